"""What partitions cost ``link`` in continuous order: recall of the oracle, by pages crawled.

    python -m benchmarks.partitions [--partitions 1 16] [--seed-sets 3] [--out FOLDER] [NAME=VALUE ...]

Crawls the pages of ../shared/clueweb22-real by one worker, from 100 random seeds, until half of the pages in reach are
crawled. The oracle is the tenth of the pages with the highest influence scores; recall is the share of those in reach
that were crawled by the time that so many of the pages in reach were.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.policies import REAL, REAL_MODEL, SEEDS
from benchmarks.policy_webs import MemoryWeb, RememberedScores, open_web
from benchmarks.results import Result, Table, add_output, publish

_SHARES = (0.1, 0.25, 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--seed-sets", type=int, default=3)
    parser.add_argument("--policy", default="link")
    add_output(parser)
    given = parser.parse_args()
    web = open_web("whole", REAL)
    oracle = web.oracle(RememberedScores(REAL_MODEL))
    rows: list[list[str | float | None]] = []
    with tempfile.TemporaryDirectory(prefix="crawl4llm-") as scratch:
        for partitions in given.partitions:
            found = [
                _recalls(web, oracle, Path(scratch, f"{partitions}-{number}"), partitions, number, given)
                for number in range(given.seed_sets)
            ]
            rows.append([str(partitions), *map(statistics.mean, zip(*found, strict=True))])
    data = f"the {len(set(web.keys())):,} real pages, means of {given.seed_sets} sets of {SEEDS} seeds; {given.policy}"
    table = Table("Recall", ["partitions", *(f"{share:.0%}" for share in _SHARES)], rows)
    publish(Result("partitions", [" ".join([data, *given.settings])], [table]), given)


def _recalls(
    web: MemoryWeb, oracle: set[str], folder: Path, partitions: int, seed_set: int, given: argparse.Namespace
) -> list[float]:
    """Return the recalls of a crawl."""
    seeds = web.sample(SEEDS, seed_set)
    reachable = web.reachable(seeds)
    (folder / "storage").mkdir(parents=True)
    (folder / "seeds.txt").write_text("".join(f"{key}\n" for key in seeds))
    settings = {
        "CORPUS": REAL,
        "SCORER_MODEL": REAL_MODEL,
        "URL_POLICY": given.policy,
        "CRAWL_BATCH_SIZE": 0,
        "CRAWL_MAX_PAGES": int(_SHARES[-1] * len(reachable)),
        "CRAWL_PARTITIONS": partitions,
        "STORAGE": f"file://{folder / 'storage'}",
        "SCORE_CACHE": folder.parent / "scores",
        "WARC_ENABLED": 0,
        "OUTPUT_DIR": folder / "out",
    }
    values = [*(f"{name}={value}" for name, value in settings.items()), *given.settings]
    options = [part for value in values for part in ("-s", value)]
    _scrapy("crawl", "influence", "-a", f"seeds={folder / 'seeds.txt'}", *options)
    _scrapy("cluster", "merge", str(settings["STORAGE"]), "--out", str(folder / "merged"))
    keys = [json.loads(line)["id"] for line in (folder / "merged/crawl.jsonl").open()]
    in_reach = oracle & reachable
    return [len(in_reach & set(keys[: int(share * len(reachable))])) / len(in_reach) for share in _SHARES]


def _scrapy(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "scrapy", *arguments], check=True, capture_output=True)


if __name__ == "__main__":
    main()

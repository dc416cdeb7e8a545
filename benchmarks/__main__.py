"""Runs the benchmarks of the project one after the other and writes a JSON file of each.

    python -m benchmarks [simulation,policies,frontier,archive,text,live,scaling] [--quick] [--peer CHECKOUT]
                         [--out build/bench]

All of it takes about an hour on two quiet cores, ``--quick`` some minutes: fewer runs of fewer pages, to see that it
works. ``python -m benchmarks.report --take build/bench`` brings the JSON into README and docs. The other modules of
this folder measure what one part of the project promises, and are started by themselves: bombs, building, cluster,
cluster_live, code_mutants, commits, dashboard, evaluation, evaluation_memory, export, foreign_links, fuzz, indexing,
known, link, liveness, many_documents, mazes, mixture, mutations, novelty, owners, partitions, politeness, replay,
same_output, site_rules, soak, stopping, stopping_offline, waiting, walk, websoftware.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.results import PROJECT

OPTIONS: dict[str, list[str]] = {
    "simulation": [],
    "policies": ["--webs=whole,demo", "--policies=link,parent_mean,host,parent_first,influence,breadth_first,random"],
    "frontier": [],
    "archive": [],
    "text": [],
    "live": [],
    "scaling": [],
}
"""The benchmarks, and how they are started."""
QUICK = {
    "simulation": ["--sizes=n500", "--runs=1"],
    "policies": ["--webs=demo", "--policies=link,parent_first,influence", "--seed-sets=2", "--runs=1"],
    "frontier": ["--size=100k"],
    "archive": ["--pages=200", "--rounds=1"],
    "text": ["--part=50"],
    "live": ["--pages=300", "--runs=1"],
    "scaling": ["--runs=1", "--urls=200k"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="?", default=",".join(OPTIONS), help="some of them (default: all)")
    parser.add_argument("--quick", action="store_true", help="measure little, in some minutes")
    parser.add_argument("--peer", type=Path, help="a checkout of cxcscmu/Crawl4LLM, for `simulation`")
    parser.add_argument("--out", type=Path, default=PROJECT / "build/bench", help="folder for the JSON (%(default)s)")
    args = parser.parse_args()
    names, out = args.only.split(","), args.out.resolve()
    if unknown := set(names) - OPTIONS.keys():
        parser.error(f"{', '.join(sorted(unknown))}: there are {', '.join(OPTIONS)}")
    failed = []
    for name in names:
        print(f"\n=== {name} ===", flush=True)
        options = [*OPTIONS[name], *(QUICK[name] if args.quick else [])]
        if name == "simulation" and args.peer:
            options.append(f"--peer={args.peer.resolve()}")
        written = out / f"{name}.json"
        written.unlink(missing_ok=True)
        module = "frontier_result" if name == "frontier" else name
        command = [sys.executable, "-m", f"benchmarks.{module}", *options, f"--out={out}"]
        subprocess.run(command, cwd=PROJECT, check=False)
        if not written.exists():  # a benchmark may end with another status where a limit is not kept
            failed.append(name)
    print(f"\nwritten to {out}; `python -m benchmarks.report --take {out}` brings it into README and docs")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

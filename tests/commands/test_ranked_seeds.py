"""Seeds from ranks of hosts: the first by PageRank, wherever they stand, without those of a list."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from pathlib import Path

import pytest
from crawl_helpers import error_of, scrapy

from crawl4llm.crawl.fetched_web import LiveCorpus
from crawl4llm.crawl.seeds import read_seeds
from crawl4llm.tools.corpus.actions import ranked_seeds

HEAD = "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev"
HOSTS = [
    ("com.one", 3),
    ("org.two.www2", 1),
    ("com.spam", 2),
    ("io.github.three", 5),
    ("uk.co.four", 4),
    ("no..host", 6),
]
LINES = [f"{place}\t2.5E7\t{rank}\t0.005\t{name}" for place, (name, rank) in enumerate(HOSTS, 1)]


def ranks(path: Path, lines: list[str], *, packed: bool = False) -> Path:
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@pytest.mark.parametrize("of_domains", [False, True], ids=["hosts", "domains"])
def test_the_first_by_pagerank_without_those_of_the_list(tmp_path: Path, of_domains: bool) -> None:
    """What is printed is a seeds file of a live crawl."""
    lines = [f"{HEAD}\t#n_hosts", *(f"{line}\t7" for line in LINES)] if of_domains else [HEAD, *LINES]
    path = ranks(tmp_path / "ranks.gz", lines, packed=True)
    (tmp_path / "spam").write_text("spam.com\nfour.co.uk\nspam two\n")
    args = ("corpus", "sample", "--ranks", str(path), "--without", str(tmp_path / "spam"), "-n")
    result = scrapy(*args, "4")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        f"# --without {tmp_path}/spam: left out line 3 ('spam two' is not one domain)",
        "https://one.com/",
        "https://www2.two.org/",
        "# of 4 hosts of highest PageRank in ranks.gz, 2 are left out by the list",
    ]
    (tmp_path / "seeds").write_text(result.stdout)
    assert read_seeds(tmp_path / "seeds", LiveCorpus()).keys == ["https://one.com/", "https://www2.two.org/"]
    more = scrapy(*args, "100").stdout.splitlines()
    assert more[1:4] == ["https://one.com/", "https://www2.two.org/", "https://three.github.io/"]
    assert more[4].endswith("2 are left out by the list, 1 are not domains")


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["com.one\t0.5"], "line 1, has 2 columns; it takes Common Crawl's ranks of hosts or domains: #harmonicc_pos "),
        (["1,GlobalRank,one.com"], "line 1, has 1 columns; "),
        ([HEAD, LINES[0], "2\t2.5\t-\t0.1\tcom.two"], "line 3, has no position by PageRank in column 3; "),
        (["#name\tvalue", "com.one\t1"], "line 1, has the columns '#name\\tvalue'; "),
        ([HEAD], "has no lines"),
        ([f"{HEAD}{'x' * 2_000_000}"], "cannot be read: line 1 has more than 1,048,576 characters"),
    ],
    ids=["two columns", "commas", "no number", "another head", "empty", "long line"],
)
def test_a_file_of_another_format_is_one_line(tmp_path: Path, lines: list[str], fault: str) -> None:
    path = ranks(tmp_path / "ranks", lines)
    result = scrapy("corpus", "sample", "--ranks", str(path))
    assert result.returncode == 1
    assert fault in error_of(result)
    assert error_of(result).startswith(f"--ranks {path}")
    assert result.stdout in {"", "https://one.com/\n"}


def test_damage_is_told(tmp_path: Path) -> None:
    path = ranks(tmp_path / "ranks", [HEAD, *(f"{n}\t1.5\t{n + 100}\t0.1\tcom.{n}" for n in range(9000))], packed=True)
    path.write_bytes(path.read_bytes()[:-20])
    assert "is damaged" in error_of(scrapy("corpus", "sample", "--ranks", str(path), "-n", "9"))
    assert "--without goes with --ranks" in error_of(scrapy("corpus", "sample", "--without", str(path)))


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    order = list(range(1, 60_001))
    random.Random(3).shuffle(order)
    lines = [f"{place}\t2.5\t{rank}\t0.1\tcom.host-{rank}" for place, rank in enumerate(order, 1)]
    path = ranks(tmp_path / "ranks.gz", lines, packed=True)
    tracemalloc.start()
    found = {int(line.partition("-")[2].partition(".")[0]) for line in ranked_seeds(path, 500, None) if line[0] != "#"}
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == set(range(1, 501))
    assert most < 1_000_000

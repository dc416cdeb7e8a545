"""Harmonic centrality: ranks from files, and those of a corpus's own links."""

from __future__ import annotations

import gzip
import os
from argparse import Namespace
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crawl_helpers import Web, crawl, crawl_log, scrapy
from graph_corpus import GraphCorpus
from hypothesis import given, strategies as st
from policy_helpers import new_policy, rate
from scrapy.settings import Settings

from crawl4llm.base.compression import zstd
from crawl4llm.base.errors import InputError
from crawl4llm.policies import Candidate
from crawl4llm.policies.harmonic import HarmonicRanks
from crawl4llm.tools.corpus.actions import RANKS
from simulate.centrality import harmonic_centrality, page_ranks

HOSTS = """\
#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev
1\t3.4626736E7\t3\t0.005384977821460953\tcom.facebook
2\t3.42356E7\t2\t0.007010813553170503\tcom.googleapis.fonts
3\t1.5\t9\t4.5e-09\tuk.co.example.news
"""
DOMAINS = """\
#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\t#n_hosts
1\t3.2465568E7\t3\t0.0124878\tcom.facebook\t3668
2\t7.25\t9\t4.5e-09\tuk.co.example\t2
"""
PAGES = "clueweb22-en0000-00-00001\t12.5\nhttp://example.org/ä\t0.25\nhttp://example.org/ä\t9\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Writes a ranks file."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "ranks"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize(
    ("content", "key", "url", "value"),
    [
        (HOSTS, "k", "https://www.facebook.com/x", 34626736.0),
        (HOSTS, "k", "https://facebook.com:443", 34626736.0),
        (HOSTS, "k", "https://m.facebook.com/", 0.0),
        (HOSTS, "k", "https://fonts.googleapis.com/css", 34235600.0),
        (HOSTS, "k", "https://googleapis.com/", 0.0),
        (HOSTS, "k", "http://News.Example.co.uk/a", 1.5),
        (HOSTS, "com.facebook", "", 0.0),
        (DOMAINS, "k", "https://www.facebook.com/x", 32465568.0),
        (DOMAINS, "k", "https://a.b.example.co.uk/", 7.25),
        (DOMAINS, "k", "https://co.uk/", 0.0),
        (DOMAINS, "k", "https://other.co.uk/", 0.0),
        (DOMAINS, "k", "", 0.0),
        (PAGES, "clueweb22-en0000-00-00001", "https://www.facebook.com/x", 12.5),
        (PAGES, "http://example.org/ä", "", 0.25),
        (PAGES, "clueweb22-en0000-00-00002", "http://example.org/ä", 0.0),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_values(write: Callable[..., Path], content: str, key: str, url: str, value: float, compressed: bool) -> None:
    data = content.encode()
    path = write(gzip.compress(data[:40], mtime=0) + gzip.compress(data[40:]) if compressed else data)
    assert HarmonicRanks(path).value(key, url) == value


def test_lines_without_a_head_and_with_other_line_ends(write: Callable[..., Path]) -> None:
    ranks = HarmonicRanks(write(HOSTS.partition("\n")[2].replace("\n", "\r\n")))
    assert ranks.value("", "http://facebook.com/") == 34626736.0


def test_the_digest_is_that_of_the_content(write: Callable[..., Path]) -> None:
    plain, zipped = (
        HarmonicRanks(write(PAGES)).digest,
        HarmonicRanks(write(gzip.compress(PAGES.encode(), mtime=0))).digest,
    )
    other = HarmonicRanks(write(PAGES.replace("12.5", "12.6"))).digest
    assert plain == zipped != other


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", " has no lines"),
        ("#harmonicc_pos\t#harmonicc_val\n", " has no lines"),
        ("a\tb\tc\n", ", line 1, has 3 columns; "),
        (PAGES + "\n", ", line 4, has 1 columns; "),
        (PAGES + HOSTS.splitlines()[1], ", line 4, has 5 columns; "),
        (HOSTS + DOMAINS.splitlines()[1], ", line 5, has 6 columns; "),
        ("a\tmuch\n", ", line 1, has no number in column 2: 'much'"),
        ("a\tnan\n", ", line 1, has no number in column 2: 'nan'"),
        (HOSTS + "4\t\t1\t1\tcom.x\n", ", line 5, has no number in column 2: ''"),
        (b"a\xff\t1\n", " is no text in UTF-8"),
        (gzip.compress(PAGES.encode(), mtime=0)[:-9], " is damaged: "),
        (gzip.compress(PAGES.encode(), mtime=0)[:-8] + b"\0" * 8, " is damaged: "),
        (b"\x1f\x8bno gzip at all", " is damaged: "),
        (zstd.compress(PAGES.encode())[:-3], " is damaged: "),
        (zstd.compress(PAGES.encode())[:6] + b"\xff" * 30, " is damaged: "),
    ],
)
def test_a_malformed_file_is_named(write: Callable[..., Path], content: str | bytes, fault: str) -> None:
    path = write(content)
    with pytest.raises(InputError) as error:
        HarmonicRanks(path)
    assert str(error.value).startswith(f"HARMONIC_RANKS {path}{fault}")
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^HARMONIC_RANKS .*/none cannot be read: No such file or directory"):
        HarmonicRanks(tmp_path / "none")
    with pytest.raises(InputError, match=r"^HARMONIC_RANKS .* cannot be read: Is a directory"):
        HarmonicRanks(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InputError, match=r"^HARMONIC_RANKS .*/fifo cannot be read: it is a FIFO, not a regular file$"):
        HarmonicRanks(tmp_path / "fifo")
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 200_000_000_000)
    with pytest.raises(InputError, match=r"^HARMONIC_RANKS .*/huge cannot be read: line 1 has more than "):
        HarmonicRanks(tmp_path / "huge")


def test_the_policy_needs_a_file(write: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=r"^HARMONIC_RANKS is not set; give "):
        new_policy(GraphCorpus({}), url_policy="harmonic")
    policy = new_policy(GraphCorpus({}), url_policy="harmonic", harmonic_ranks=str(write(HOSTS)))
    found = [Candidate("a", "http://facebook.com/a", 1, "s"), Candidate("b", "http://other.example/", 1, "s")]
    assert [rated.score for rated in rate(policy, found)] == [34626736.0, 0.0]


# -- of a corpus's links ----------------------------------------------------------------------------------------------


def naive(links: dict[str, list[str | None]]) -> dict[str, float]:
    """Breadth-first from each page."""
    centrality = dict.fromkeys(sorted(links), 0.0)
    for start in links:
        distances, queue = {start: 0}, deque([start])
        while queue:
            key = queue.popleft()
            for target in links[key]:
                if target in links and target not in distances:
                    distances[target] = distances[key] + 1
                    centrality[target] += 1 / distances[target]
                    queue.append(target)
    return centrality


@given(st.dictionaries(st.sampled_from("abcdefghij"), st.lists(st.sampled_from([*"abcdefghijxyz", None]), max_size=5)))
def test_ranks_of_small_graphs(links: dict[str, list[str | None]]) -> None:
    assert page_ranks(GraphCorpus(links), progress=False) == pytest.approx(naive(links))


def test_ranks_of_a_long_chain() -> None:
    """More pages than are followed at once, and more steps than bits in a word."""
    size = 1200
    places = np.arange(size - 1)
    found = harmonic_centrality(size, places, places + 1)
    assert found == pytest.approx(np.concatenate([[0], np.cumsum(1 / np.arange(1, size))]))


def test_ranks_are_written_and_crawled_by(demo_web: Web, tmp_path: Path) -> None:
    written_to = tmp_path / "ranks.tsv.gz"
    written = scrapy("corpus", "ranks", "--out", str(written_to), "-s", f"CORPUS={demo_web.corpus}")
    assert written.returncode == 0, written.stderr
    assert written.stdout.startswith("pages  1,500\n")
    values = dict(line.split("\t") for line in gzip.decompress(written_to.read_bytes()).decode().splitlines())
    assert len(values) == 1500
    assert list(map(float, values.values())) == sorted(map(float, values.values()), reverse=True)
    settings: dict[str, Any] = {"URL_POLICY": "harmonic", "HARMONIC_RANKS": written_to, "WARC_ENABLED": 0}
    result = crawl(demo_web, tmp_path / "run", CRAWL_SEEDS=5, CRAWL_BATCH_SIZE=10, CRAWL_MAX_PAGES=60, **settings)
    assert result.returncode == 0, result.stderr
    lines = crawl_log(tmp_path / "run")
    assert len(lines) == 60
    assert [line["priority"] for line in lines] == [float(values[line["id"]]) for line in lines]


def test_ranks_write_over_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.tsv").write_text("mine")
    with pytest.raises(InputError, match="exists already; give another name, or remove it"):
        list(RANKS.run(Settings({"CORPUS": str(tmp_path / "none")}), Namespace(out=tmp_path / "mine.tsv")))
    assert (tmp_path / "mine.tsv").read_text() == "mine"


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (None, "give the file to write: --out FILE"),
        ("missing/ranks.tsv", "is no folder"),
        ("folder", "exists already"),
        ("/", "exists already"),
        ("fifo", "exists already"),
        ("x" * 252, "cannot be written: File name too long"),
        ("x" * 300, "cannot be written: File name too long"),
        ("/proc/self/ranks.tsv", "cannot be written: "),
    ],
)
def test_where_ranks_cannot_be_written(tmp_path: Path, out: str | None, words: str) -> None:
    """Told before the corpus is looked at, of which there is none."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    arguments = Namespace(out=None if out is None else tmp_path / out)
    with pytest.raises(InputError, match=words):
        list(RANKS.run(Settings({"CORPUS": str(tmp_path / "none")}), arguments))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "folder"]

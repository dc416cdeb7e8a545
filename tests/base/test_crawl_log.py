"""A crawl log opened again where it was committed: the same bytes as if it had never stopped."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from power_cut_helpers import SURVIVALS, Disk, PowerCutError, die, files_under, put_files

from crawl4llm.base.crawl_log import CrawlLine, FailureLine, LogPosition
from crawl4llm.base.errors import InputError
from crawl4llm.crawl.page_writer import CrawlLog

BEGINNING = LogPosition(0, 0)


def crawl_line(order: int) -> CrawlLine:
    return {
        "order": order,
        "iteration": None,
        "id": "\N{SNOWMAN}" * order,
        "url": f"http://example.org/{order}",
        "status": 200,
        "priority": 1 / (order + 1),
        "influence": None,
        "depth": 0,
        "parent": None,
        "visited": order,
        "fetched": order,
    }


def failure_line(number: int) -> FailureLine:
    return {"id": str(number), "url": "", "outcome": "failed", "reason": "http_404", "depth": 0, "parent": None}


def write(log: CrawlLog, begin: int, end: int) -> LogPosition:
    """A line a page, and a failure at every third."""
    for order in range(begin, end):
        log.write([crawl_line(order)], [] if order % 3 else [failure_line(order)])
    return log.position()


def logged(directory: Path, begin: int, end: int, at: LogPosition | None = None) -> dict[str, bytes]:
    """The files of a log with these lines, the first at ``at``."""
    directory.mkdir(exist_ok=True)
    log = CrawlLog(directory, at=at)
    assert log.position() == (at or BEGINNING)
    write(log, begin, end)
    log.close()
    return files_under(directory)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.binary(max_size=9)), max_size=4))
def test_stopped_anywhere_and_often(stops: list[tuple[int, int, bytes]]) -> None:
    """Each stop: so many pages committed, so many more written, then a torn line."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        directory = root / "stopped"
        directory.mkdir()
        pages, at = 0, BEGINNING
        for more, lost, tail in stops:
            log = CrawlLog(directory, at=at)
            at = write(log, pages, pages + more)
            pages += more
            log.flush()
            write(log, pages, pages + lost)
            die(directory)
            for file in directory.iterdir():
                with file.open("ab") as stream:
                    stream.write(tail)
        assert logged(directory, pages, 20, at) == logged(root / "whole", 0, 20)


@pytest.mark.parametrize("calls", range(10))
@pytest.mark.parametrize(("names", "data"), SURVIVALS)
def test_power_cut(tmp_path: Path, calls: int, names: str, data: str) -> None:
    root = tmp_path / "cut"
    put_files(root, {})
    pages, at = 0, BEGINNING
    disk = Disk(root, calls)
    try:
        with disk.powered():
            log = CrawlLog(root, at=at)
            for end in range(3, 20, 3):
                position = write(log, end - 3, end)
                log.flush(fsync=True)
                pages, at = end, position
    except PowerCutError:
        pass
    put_files(root, disk.survivors(names, data))
    assert pages < 18
    assert logged(root, pages, 20, at) == logged(tmp_path / "whole", 0, 20)


@pytest.mark.parametrize("name", ["crawl.jsonl", "failures.jsonl"])
def test_less_is_left_than_was_committed(tmp_path: Path, name: str) -> None:
    log = CrawlLog(tmp_path)
    at = write(log, 0, 10)
    log.close()
    (tmp_path / name).write_bytes(bytes(120))
    with pytest.raises(InputError, match=rf"/{name} holds 120 bytes, but \S+ were committed; restore it"):
        CrawlLog(tmp_path, at=at)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=rf"/{name} is missing, but \S+ bytes of it were committed; restore it"):
        CrawlLog(tmp_path, at=at)
    with pytest.raises(InputError, match=r"^cannot create \S+/none/crawl.jsonl: No such file or directory$"):
        CrawlLog(tmp_path / "none", at=BEGINNING)

"""``scrapy frontier JOBDIR --verify``: a check that everything is there that was committed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base import crawl_log
from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.files import lost
from crawl4llm.base.input_files import open_input, parse_json
from crawl4llm.base.run_folder import WARC
from crawl4llm.base.tables import Fact, Line, Part
from crawl4llm.base.within import within
from crawl4llm.crawl import StoredCrawl
from crawl4llm.tools._action import Action
from crawl4llm.warc import INDEX_NAME, OPEN_SUFFIX, TEXT_INDEX_NAME, SeriesPosition, cdxj

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_LONGEST_LINE = 1 << 20
"""Bytes; a line of a log holds no more than two keys and a URL."""


def _run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Yield ``sound`` and the equation, or raise InputError that names the file and its fault."""
    with StoredCrawl(Path(opts.arguments[0]), thorough=True) as crawl:
        crawl.check_balance()
        equation = str(crawl.balance)
        if crawl.state.crawl is not None:
            output = crawl.output(settings)
            _check_lines(output / crawl_log.NAME, crawl.state.log.pages, crawl.archived)
            _check_lines(output / crawl_log.FAILURES, crawl.state.log.failures)
            if crawl.state.archive.index_offset:
                _check_archive(output / WARC, INDEX_NAME, crawl.state.archive.pages, crawl.archived)
            if crawl.state.archive.text_index_offset:
                _check_archive(output / WARC, TEXT_INDEX_NAME, crawl.state.archive.texts)
    yield Fact("sound", value=True, shown="")
    yield Fact("equation", equation, "")
    yield Line(f"sound: {equation}")


def _check_lines(path: Path, size: int, lines: int | None = None) -> None:
    """Check that the first ``size`` bytes of a log are ``lines`` lines of JSON."""
    _check_size(path, size)
    found = read = 0
    with (
        as_input_error(f"{path} cannot be read"),
        open_input(path) as file,
        Progress[None](None, path.name, size, unit="B", unit_scale=True) as bar,
    ):
        while read < size:
            line = file.readline(min(size - read, _LONGEST_LINE))
            found += 1
            read += len(line)
            if not (line.endswith(b"\n") and _is_json(line)):
                raise _damaged(f"{path} line {found:,}")
            bar.update(len(line))
    if lines not in {None, found}:
        raise _damaged(f"{path}, which holds {found:,} pages of {lines:,},")


def _is_json(line: bytes) -> bool:
    try:
        parse_json(line)
    except ValueError:
        return False
    return True


def _check_archive(directory: Path, name: str, position: SeriesPosition, pages: int | None = None) -> None:
    """Check that an index has ``pages`` pages, and that its files are long enough for them."""
    index = directory / name
    _check_size(index, position.index_offset)
    ends: dict[str, int] = {}
    found, filename = 0, ""
    for entry in cdxj.read(index, redirects=True, end=position.index_offset):
        filename = entry.filename
        ends[filename] = entry.offset + entry.length
        found += bool(entry.id)
    if pages not in {None, found}:
        raise _damaged(f"{index}, which holds {found:,} pages of {pages:,},")
    ends[filename] = max(ends[filename], position.offset)  # with the metadata of its last entry
    for filename, end in ends.items():
        _check_size(within(directory, filename, index), end)


def _check_size(path: Path, size: int) -> None:
    """Check that a file, whose name may end with ``.open``, holds ``size`` bytes."""
    # A crawl that is running may rename the file between two looks.
    for place in (path, path.with_name(path.name + OPEN_SUFFIX), path):
        try:
            found = place.stat().st_size
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InputError(f"{place} cannot be read: {error.strerror}") from None
        if found < size:
            raise lost(place, f"holds {found:,} bytes", f"{size:,}")
        return
    raise lost(path, "is missing", f"{size:,} bytes of it")


def _damaged(what: str) -> InputError:
    return InputError(f"{what} is damaged; restore it from a backup or begin a new crawl")


VERIFY = Action("check the JOBDIR, and that the output holds everything that was committed", _run)

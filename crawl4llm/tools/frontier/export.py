"""``scrapy frontier JOBDIR --export FILE``: the documents in the frontier as JSONL."""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from tqdm import tqdm

from crawl4llm.base.errors import InputError
from crawl4llm.base.tables import Fact, Line, Part
from crawl4llm.base.whole_files import check_new_file, refuse_to_overwrite, replacing
from crawl4llm.crawl import StoredCrawl
from crawl4llm.tools._action import Action

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _run(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Write the file, or yield its lines if that is ``-``."""
    jobdir, name = opts.arguments
    path = Path(name)
    if not path.name:
        raise InputError(f"--export {name!r} is not the name of a file")
    if name == "-" and opts.json:
        raise InputError(
            "--json cannot be combined with --export -, which prints one JSON object per line; leave it out"
        )
    with StoredCrawl(Path(jobdir)) as crawl:
        if name == "-":
            yield from _lines(crawl)
            return
        _write(path, crawl)
        number = len(crawl.frontier) + len(crawl.aside)
        yield Fact("documents", number, "")
        yield Line(f"{number:,} documents written to {path}")


def _lines(crawl: StoredCrawl) -> Iterator[str]:
    number = len(crawl.frontier) + len(crawl.aside)
    for entry in tqdm(chain(crawl.frontier.best(), crawl.aside), "Exporting", number, unit=" documents", disable=None):
        others = {name: getattr(entry, name) for name in ("url", "score", "depth", "parent", "attempts")}
        yield json.dumps({"id": entry.key, **others})


def _write(path: Path, crawl: StoredCrawl) -> None:
    """Write a new file whole or not at all."""
    try:
        check_new_file(path, "--export")
        with ExitStack() as opened:
            file = opened.enter_context(replacing(path, path.with_name(f"{path.name}.{os.getpid()}.open")))
            opened.callback(refuse_to_overwrite, path, "--export")
            if path.suffix == ".gz":  # without name and time: equal frontiers make equal files
                file = cast(BinaryIO, opened.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0)))
            for line in _lines(crawl):
                file.write(line.encode("ascii") + b"\n")
    except OSError as error:
        raise InputError(f"--export {path} cannot be written: {error.strerror}") from None


EXPORT = Action(
    "write the queued documents with their scores as JSONL, best first; compressed if the name ends with .gz, to the "
    "terminal for -",
    _run,
    "FILE",
)

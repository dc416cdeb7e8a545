"""``scrapy archive finish``: what a dataset's users need beside its WARC files."""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError
from crawl4llm.base.terminal import positive_integer
from crawl4llm.options import cores
from crawl4llm.tools.archive.changes import complete, exclusive
from crawl4llm.tools.archive.copying import CopyOptions, copy_dataset
from crawl4llm.tools.archive.finishing import finish
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.tools.archive.jobs import require_idle
from crawl4llm.tools.archive.survey import surveyed
from crawl4llm.tools.archive.wacz import write_wacz

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

HELP = (
    "Give files their final names; write MD5 file, record-count file and sorted index; on request a copy with TREC ids "
    "or a sample, and a WACZ (also takes --jobs)."
)
ARGUMENTS = "DIR"


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add what is made on request."""
    parser.add_argument(
        "--trec-ids",
        type=_dataset_name,
        metavar="NAME",
        help="copy to --out: ids like NAME-0000wb-00-00000, in ClueWeb12's segments, directories and files",
    )
    parser.add_argument(
        "--sample", type=positive_integer, metavar="K", help="copy every Kth document of each file to --out"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the copy goes: a new folder")
    parser.add_argument("--wacz", type=Path, metavar="FILE", help="write all of it as a WACZ")


def _dataset_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of a dataset: letters, digits and _ only")
    return text


def run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Finish, and yield what was written."""
    copy = CopyOptions(opts.trec_ids, opts.sample)
    if (opts.out is None) == (copy != CopyOptions()):
        raise InputError("--trec-ids and --sample copy to --out DIR; give both or none")
    dataset = Dataset(Path(opts.arguments[0]))
    require_idle(dataset, settings)
    with exclusive(dataset.base):
        complete(dataset.base)
        with surveyed(dataset, opts.jobs or cores(), md5=True, label="reading") as facts:
            yield from finish(dataset, facts)
            if opts.out is not None:
                yield from copy_dataset(dataset, facts, opts.out, copy)
        if opts.wacz is not None:
            with tempfile.TemporaryDirectory(prefix="crawl4llm-") as folder:
                yield from write_wacz(dataset, opts.wacz, Path(folder))

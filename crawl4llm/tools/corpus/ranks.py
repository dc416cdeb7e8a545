"""``scrapy corpus ranks``: harmonic centrality of the corpus's pages, for the policy ``harmonic``."""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError
from crawl4llm.base.terminal import wants_bar
from crawl4llm.options import read_options
from simulate.build.centrality import page_ranks
from simulate.open import open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

HELP = (
    "Write the harmonic centrality of every page to --out FILE (.gz: compressed), best first, for HARMONIC_RANKS. It "
    "is exact, over the links between documents of the corpus; the time grows with pages times links."
)
ARGUMENTS = ""


def add_options(parser: argparse._ArgumentGroup) -> None:
    """Add ``--out``."""
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write")


def run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
    """Compute and write, then yield how many pages there are and where the ranks lie."""
    if opts.out is None:
        raise InputError("say where to write: scrapy corpus ranks --out FILE")
    _check_writable(opts.out)
    corpus = open_corpus(settings)
    corpus.check()
    corpus.require("outlinks")
    ranks = page_ranks(corpus, progress=wants_bar(read_options(settings).progress_bar))
    best_first = sorted(ranks.items(), key=lambda ranked: (-ranked[1], ranked[0]))
    _write(opts.out, "".join(f"{key}\t{value!r}\n" for key, value in best_first))
    yield f"pages  {len(ranks)}"
    yield f"ranks  {opts.out}"
    yield f"Next: scrapy crawl influence -s URL_POLICY=harmonic -s HARMONIC_RANKS={opts.out}"


def _check_writable(path: Path) -> None:
    """Say so before the work is done, where it would be for nothing."""
    with _written(path) as temporary:
        if not path.parent.is_dir():
            raise InputError(f"--out {path} cannot be written: {path.parent} is no folder")
        if path.is_dir():
            raise InputError(f"--out {path} cannot be written: Is a directory")
        if path.exists() and not path.is_file():
            raise InputError(f"--out {path} cannot be written: it is a device or a FIFO; name a file")
        temporary.touch()
        temporary.unlink()


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    data = text.encode("utf-8", "surrogatepass")
    with _written(path) as temporary:
        temporary.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
        temporary.replace(path)


@contextmanager
def _written(path: Path) -> Iterator[Path]:
    """A temporary file beside the one that is to be written, which does not outlive a failure."""
    temporary = path.parent / f"{path.name}.open"
    try:
        yield temporary
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise InputError(f"--out {path} cannot be written: {error.strerror}") from None

"""Opens the corpus that the settings name, and makes its index."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import project_data_dir

from crawl4llm.base.errors import InputError
from crawl4llm.crawl.web import StoredCorpus
from crawl4llm.option_checks import whole
from crawl4llm.options import Options, cores, read_options
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.clueweb22.layout import KINDS
from simulate.clueweb22.url_index_build import build_url_index
from simulate.demo.demo import DemoPaths, ensure_demo
from simulate.warcs.corpus import WarcCorpus
from simulate.warcs.files import list_files
from simulate.warcs.index_build import IndexOptions, build_warc_index

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

DEMO = "demo"
"""The value of ``CORPUS`` that means the demo web."""


def open_corpus(settings: BaseSettings) -> StoredCorpus:
    """The corpus that ``CORPUS`` names, opened as the other settings say. Raises InputError.

    It is a ClueWeb22 tree where it is a folder that holds one of that dataset's folders, else a WARC collection, which
    is indexed first where it has no index yet.
    """
    options = read_options(settings)
    place, largest = _place(options), largest_page(settings)
    if _is_clueweb22(place):
        return _clueweb22(place, options, largest)
    return WarcCorpus(place, index_folder(place), _warc_options(options), processes=cores(), largest=largest)


def index_corpus(settings: BaseSettings, jobs: int) -> Iterator[tuple[str, str]]:
    """Make the index of the corpus, or bring it up to date; yields what it holds. Raises InputError."""
    options = read_options(settings)
    place = _place(options)
    folder = index_folder(place)
    if _is_clueweb22(place):
        corpus = _clueweb22(place, options, largest_page(settings))
        corpus.check()
        urls = build_url_index(corpus, folder, jobs)
        yield "documents", str(urls.documents)
        yield "duplicates", f"{urls.duplicates} (of one URL, the document with the smallest key is found)"
        yield "unreadable", str(urls.unreadable)
        yield "files", f"{urls.parts_read} read, {urls.parts_kept} unchanged since an earlier run"
    else:
        records = build_warc_index(list_files(place), folder, _warc_options(options), jobs)
        yield "documents", str(records.documents)
        yield "duplicates", f"{records.duplicates} (of one URL, the {options.corpus_duplicates} is held)"
        yield from ((f"  {what}", str(count)) for what, count in sorted(records.counts.items()))
        yield from (("left out", why) for why in records.unreadable)
        yield "files", f"{records.files_read} read, {records.files_kept} unchanged since an earlier run"
    yield "index", str(folder)


def largest_page(settings: BaseSettings) -> int | None:
    """Bytes of the largest page that is read: Scrapy's ``DOWNLOAD_MAXSIZE``; None where it is 0. Raises InputError."""
    given = settings.get("DOWNLOAD_MAXSIZE")
    try:
        return whole(0)(given) or None
    except ValueError as error:
        raise InputError(f"DOWNLOAD_MAXSIZE = {given!r} {error}") from None


def demo_web() -> DemoPaths:
    """The demo web of this project, built where it is not there yet. Raises InputError."""
    return ensure_demo(data_dir())


def data_dir() -> Path:
    """Scrapy's data dir of the project; ``.scrapy`` in the current folder outside of one."""
    try:
        return Path(project_data_dir())
    except (NotConfigured, OSError):
        return Path(".scrapy")


def index_folder(place: Path) -> Path:
    """Where the index of the corpus at a place lies: in Scrapy's data dir, one folder for each corpus.

    It goes by the place of the corpus, not by its identity, so that the index of a corpus that has grown takes over
    what it has of the files that are unchanged.
    """
    absolute = Path(os.path.realpath(place))  # as place.resolve(), but for links in a circle, at which that fails
    return data_dir() / "corpora" / f"{absolute.name}-{hashlib.sha256(str(absolute).encode()).hexdigest()[:12]}"


def _place(options: Options) -> Path:
    """The place on disk that ``CORPUS`` means; it may be a glob pattern."""
    if options.corpus is None:
        raise InputError("CORPUS is not set; give `demo`, a ClueWeb22 tree, or WARC files: -s CORPUS=PATH")
    return demo_web().corpus if options.corpus == DEMO else Path(options.corpus).expanduser()


def _is_clueweb22(place: Path) -> bool:
    return any(os.path.isdir(place / kind) for kind in KINDS)  # noqa: PTH112 - Path.is_dir fails at names too long


def _clueweb22(root: Path, options: Options, largest: int | None) -> ClueWeb22Corpus:
    return ClueWeb22Corpus(
        root,
        link_id_position=options.clueweb22_link_id_position,
        target_prefix=options.clueweb22_target_prefix,
        url_index=index_folder(root),
        largest=largest,
    )


def _warc_options(options: Options) -> IndexOptions:
    return IndexOptions(options.corpus_duplicates, options.corpus_canonical_links)

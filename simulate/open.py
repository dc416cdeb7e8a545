"""The door of the room: opens the corpus that the settings name, makes its index, builds from it.

Tools take everything of this room from here.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import project_data_dir

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Corpus
from crawl4llm.base.terminal import wants_bar
from crawl4llm.option_checks import is_corpus_class, whole
from crawl4llm.options import DEMO, Options, cores, read_options
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.clueweb22.record_parser import FULL_ID_POSITION, KINDS
from simulate.clueweb22.url_index import build_url_index
from simulate.demo.demo import HOSTS, PAGES, DemoPaths, build_demo, demo_paths, describe, ensure_demo
from simulate.warcs.corpus import WarcCorpus
from simulate.warcs.files import list_files
from simulate.warcs.index import Place, WarcIndex
from simulate.warcs.index_build import DEFAULTS, IndexOptions, build_warc_index, is_current, points_path
from simulate.warcs.part import FAILED, HTML, REVISITED
from simulate.warcs.scan import DAMAGED, NO_LENGTH, NO_URL, NOT_HTML, PAGE, REVISIT, UNTYPED

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

# fmt: off
__all__ = [
    "DAMAGED", "DEFAULTS", "FAILED", "FULL_ID_POSITION", "HOSTS", "HTML", "NOT_HTML", "NO_LENGTH", "NO_URL", "PAGE",
    "PAGES", "REVISIT", "REVISITED", "UNTYPED", "Place", "WarcCorpus", "WarcIndex", "build_demo",
    "build_warc_index", "demo_paths", "describe", "ensure_demo", "is_current", "list_files", "points_path",
]
# fmt: on
"""What the tools take from modules of the room."""

_PARTS: Final = (*(part for part in vars(Corpus) if not part.startswith("_")), "__contains__", "__len__")
"""What a corpus class must have."""


def open_corpus(settings: BaseSettings) -> Corpus:
    """Open the corpus that ``CORPUS`` names, as the other settings say. Raises InputError.

    The dotted path of a class is loaded; a folder that holds one of that dataset's folders is a ClueWeb22 tree, all
    else a WARC collection, which is indexed first where it has no index yet.
    """
    options = read_options(settings)
    if is_corpus_class(options.corpus):
        return _own_corpus(options)
    place, largest = _place(options), largest_page(settings)
    if is_clueweb22(place):
        return _clueweb22(place, options, largest)
    return WarcCorpus(place, index_folder(place), _warc_options(options), processes=cores(), largest=largest)


def index_corpus(settings: BaseSettings, jobs: int) -> Iterator[tuple[str, str]]:
    """Make the index of the corpus, or bring it up to date; yield what it holds. Raises InputError."""
    options = read_options(settings)
    if is_corpus_class(options.corpus):
        raise InputError(f"CORPUS {options.corpus} is a class of your own; what index it needs, it makes itself")
    place = _place(options)
    folder = index_folder(place)
    if is_clueweb22(place):
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


def build_corpus(
    settings: BaseSettings, to: Path, manifest: Path | None, jobs: int, *, slim_links: bool
) -> Mapping[str, int]:
    """Write the corpus as a ClueWeb22 tree, as the settings of texts say; return what was counted. Raises InputError.

    ``manifest`` and ``slim_links`` as in :mod:`simulate.build`.
    """
    from simulate.build.chunks import TextOptions
    from simulate.build.pool import BuildOptions
    from simulate.build.tree import build_tree

    options = read_options(settings)
    source = open_corpus(settings)
    source.check()
    build_options = BuildOptions(
        TextOptions(options.text_extractor, always_extract=options.simulation_text == "extracted"),
        default_date=options.simulation_date,
        time_limit=options.text_time_limit,
        slim_links=slim_links,
    )
    return build_tree(source, to, build_options, manifest=manifest, jobs=jobs).counts


def rank_pages(settings: BaseSettings) -> dict[str, float]:
    """Compute the harmonic centrality of all pages of the corpus. Raises InputError."""
    from simulate.build.centrality import page_ranks

    corpus = open_corpus(settings)
    corpus.check()
    corpus.require("outlinks")
    return page_ranks(corpus, progress=wants_bar(read_options(settings).progress_bar))


def largest_page(settings: BaseSettings) -> int | None:
    """Return the bytes of the largest page that is read (``DOWNLOAD_MAXSIZE``); None for 0. Raises InputError."""
    given = settings.get("DOWNLOAD_MAXSIZE")
    try:
        return whole(0)(given) or None
    except ValueError as error:
        raise InputError(f"DOWNLOAD_MAXSIZE = {given!r} {error}") from None


def demo_web() -> DemoPaths:
    """Return the demo web of this project, built where it is not there yet. Raises InputError."""
    return ensure_demo(data_dir())


def data_dir() -> Path:
    """Return Scrapy's data dir of the project; ``.scrapy`` in the current folder outside of one."""
    try:
        return Path(project_data_dir())
    except (NotConfigured, OSError):
        return Path(".scrapy")


def index_folder(place: Path) -> Path:
    """Return where the index of the corpus at a place lies: in Scrapy's data dir, one folder for each corpus.

    It goes by the place of the corpus, not by its identity, so that the index of a corpus that has grown takes over
    what it has of the files that are unchanged.
    """
    absolute = Path(os.path.realpath(place))  # as place.resolve(), but for links in a circle, at which that fails
    return data_dir() / "corpora" / f"{absolute.name}-{hashlib.sha256(str(absolute).encode()).hexdigest()[:12]}"


def _own_corpus(options: Options) -> Corpus:
    """Load a corpus class by its dotted path, and make the corpus that the settings describe. Raises InputError."""
    module, _, name = str(options.corpus).rpartition(".")
    try:
        found: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"CORPUS {options.corpus}: there is no such file, and no such class ({error})") from None
    if missing := [part for part in ("from_options", *_PARTS) if not hasattr(found, part)]:
        raise InputError(f"CORPUS {options.corpus} is no corpus class: it lacks {', '.join(missing)}")
    corpus: Corpus = found.from_options(options)
    return corpus


def _place(options: Options) -> Path:
    """Return the place on disk that ``CORPUS`` means; it may be a glob pattern."""
    if options.corpus is None:
        raise InputError("CORPUS is not set; give `demo`, a ClueWeb22 tree, or WARC files: -s CORPUS=PATH")
    return demo_web().corpus if options.corpus == DEMO else Path(options.corpus).expanduser()


def is_clueweb22(place: Path) -> bool:
    """Return whether a folder holds one of ClueWeb22's folders."""
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

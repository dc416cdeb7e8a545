"""Opens the corpus that the settings name, makes its index, builds a tree from it, ranks its pages. The libraries of a
kind of corpus are imported only for that kind."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import project_data_dir

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import given_path
from crawl4llm.base.pages import Corpus
from crawl4llm.base.settings import is_corpus_class, loaded, whole
from crawl4llm.base.terminal import wants_bar
from crawl4llm.options import DEMO, Options, read_options
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.clueweb22.files import kinds_held

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from simulate.demo import DemoPaths

_PARTS: Final = (*(part for part in vars(Corpus) if not part.startswith("_")), "__contains__", "__len__")
"""The attributes that a corpus class must have."""


def open_corpus(settings: BaseSettings) -> Corpus:
    """Open the corpus that ``CORPUS`` names, as the other settings say. Raises InputError.

    The dotted path of a class is loaded. A folder that holds one of ClueWeb22's folders is a ClueWeb22 tree. Anything
    else is a WARC collection, which is indexed first if it has no index.
    """
    options = read_options(settings)
    if is_corpus_class(options.corpus):
        return _own_corpus(options)
    place, largest = place_of(options), largest_page(settings)
    if is_clueweb22(place):
        return clueweb22_in(place, options, largest)
    from simulate.warcs.corpus import WarcCorpus  # slow to import, and not for other corpora

    index, canonical_links = index_folder(place), options.corpus_canonical_links
    return WarcCorpus(place, index, canonical_links, largest=largest)


def largest_page(settings: BaseSettings) -> int | None:
    """Return the bytes of the largest page that is read (``DOWNLOAD_MAXSIZE``); None for 0. Raises InputError."""
    given = settings.get("DOWNLOAD_MAXSIZE")
    with as_input_error(f"DOWNLOAD_MAXSIZE = {given!r}", form="{} {}", errors=ValueError):
        return whole(0)(given) or None


def demo_web() -> DemoPaths:
    """Return the demo web of this project; build it if it is missing. Raises InputError."""
    from simulate.demo import ensure_demo  # for the demo web alone

    return ensure_demo(data_dir())


def data_dir() -> Path:
    """Return Scrapy's data dir of the project; ``.scrapy`` in the current folder outside of one."""
    try:
        return Path(project_data_dir())
    except (NotConfigured, OSError):
        return Path(".scrapy")


def index_folder(place: Path) -> Path:
    """Return the folder of a corpus's index: in Scrapy's data dir, one folder per corpus.

    It depends on the path of the corpus, not on its identity. So the index of a corpus that has grown keeps its entries
    of unchanged files.
    """
    absolute = Path(os.path.realpath(place))  # as place.resolve(), but for links in a circle, at which that fails
    return data_dir() / "corpora" / f"{absolute.name}-{hashlib.sha256(os.fsencode(absolute)).hexdigest()[:12]}"


def _own_corpus(options: Options) -> Corpus:
    """Load a corpus class by its dotted path, and make the corpus that the settings describe. Raises InputError."""
    found = loaded(str(options.corpus), f"CORPUS {options.corpus}: no file or class has this name")
    if missing := [part for part in ("from_options", *_PARTS) if not hasattr(found, part)]:
        raise InputError(f"CORPUS {options.corpus} is no corpus class: it lacks {', '.join(missing)}")
    corpus: Corpus = found.from_options(options)
    return corpus


def place_of(options: Options) -> Path:
    """Return the place on disk that ``CORPUS`` means; it may be a glob pattern."""
    if options.corpus is None:
        raise InputError("CORPUS is not set; give `demo`, a ClueWeb22 tree, or WARC files: -s CORPUS=PATH")
    return demo_web().corpus if options.corpus == DEMO else given_path(options.corpus)


def is_clueweb22(place: Path) -> bool:
    """Return whether a folder holds one of ClueWeb22's folders."""
    return bool(kinds_held(place))


def clueweb22_in(root: Path, options: Options, largest: int | None) -> ClueWeb22Corpus:
    """Return the corpus of the tree in ``root``, with the options for its links. Raises InputError."""
    return ClueWeb22Corpus(
        root, target_prefix=options.clueweb22_target_prefix, url_index=index_folder(root), largest=largest
    )


# -- for tools --------------------------------------------------------------------------------------------------------


def index_corpus(settings: BaseSettings, jobs: int | None, tasks: int | None = None) -> Iterator[tuple[str, str]]:
    """Make the index of the corpus, or update it; yield its counts. Raises InputError.

    Files are read by ``jobs`` processes (None: as many as pay off), or in as many ``tasks`` of EXECUTOR.
    """
    from simulate.clueweb22.url_index import build_url_index  # for this alone
    from simulate.warcs.files import list_files  # likewise
    from simulate.warcs.index_build import build_warc_index  # likewise

    options = read_options(settings)
    executor = options.tasks(tasks)
    if is_corpus_class(options.corpus):
        raise InputError(f"CORPUS {options.corpus} is a class of your own, which makes its own index")
    place = place_of(options)
    folder = index_folder(place)
    if is_clueweb22(place):
        corpus = clueweb22_in(place, options, largest_page(settings))
        corpus.check()
        found = build_url_index(corpus, folder, jobs, executor)
        of_one, indent = "the document with the smallest key is found", ""
    else:
        found = build_warc_index(list_files(place), folder, options.corpus_canonical_links, jobs, executor)
        of_one, indent = "the first is held", "  "
    yield "documents", str(found.documents)
    yield "duplicates", f"{found.duplicates} (of one URL, {of_one})"
    yield from ((f"{indent}{what}", str(count)) for what, count in sorted(found.counts.items()))
    yield from (("left out", why) for why in found.unreadable)
    yield "files", f"{found.files_read} read, {found.files_kept} unchanged since an earlier run"
    yield "index", str(folder)


def build_corpus(
    settings: BaseSettings, to: Path, manifest: Path | None, jobs: int, *, slim_links: bool
) -> Mapping[str, int]:
    """Write the corpus as a ClueWeb22 tree, by the settings of texts; return the counts. Raises InputError.

    The tree has its URL index afterwards, so that seeds can be given as URLs.

    ``manifest`` and ``slim_links`` as in :mod:`simulate.build`.
    """
    from simulate.build import build_tree  # likewise
    from simulate.build.plan import BuildOptions  # slow to import, and for builds alone
    from simulate.clueweb22.url_index import build_url_index  # likewise

    options = read_options(settings)
    source = open_corpus(settings)
    source.check()
    always_extract = options.simulation_text == "extracted"
    build_options = BuildOptions(options.text_extractor, always_extract, slim_links=slim_links)
    counts = build_tree(source, to, build_options, manifest=manifest, jobs=jobs)
    build_url_index(clueweb22_in(to, options, largest_page(settings)), index_folder(to), jobs)
    return counts


def rank_pages(settings: BaseSettings) -> dict[str, float]:
    """Compute the harmonic centrality of all pages of the corpus. Raises InputError."""
    from simulate.centrality import page_ranks  # for this alone

    corpus = open_corpus(settings)
    corpus.check()
    corpus.require("outlinks")
    return page_ranks(corpus, progress=wants_bar(read_options(settings).progress_bar))

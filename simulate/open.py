"""The entry points for tools: make the index of the corpus that the settings name, build from it, rank its pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError
from crawl4llm.base.settings import is_corpus_class
from crawl4llm.base.terminal import wants_bar
from crawl4llm.options import read_options
from crawl4llm.scoring import PAGE_SECONDS
from simulate import opening
from simulate.build.centrality import page_ranks
from simulate.clueweb22.url_index import build_url_index
from simulate.warcs.files import list_files
from simulate.warcs.index_build import build_warc_index

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def index_corpus(settings: BaseSettings, jobs: int, tasks: int | None = None) -> Iterator[tuple[str, str]]:
    """Make the index of the corpus, or update it; yield its counts. Raises InputError.

    Files are read by ``jobs`` processes, or in as many ``tasks`` of EXECUTOR.
    """
    options = read_options(settings)
    executor = options.tasks(tasks)
    if is_corpus_class(options.corpus):
        raise InputError(f"CORPUS {options.corpus} is a class of your own, which makes its own index")
    place = opening.place_of(options)
    folder = opening.index_folder(place)
    if opening.is_clueweb22(place):
        corpus = opening.clueweb22_in(place, options, opening.largest_page(settings))
        corpus.check()
        urls = build_url_index(corpus, folder, jobs, executor)
        yield "documents", str(urls.documents)
        yield "duplicates", f"{urls.duplicates} (of one URL, the document with the smallest key is found)"
        yield "unreadable", str(urls.unreadable)
        yield "files", f"{urls.parts_read} read, {urls.parts_kept} unchanged since an earlier run"
    else:
        records = build_warc_index(list_files(place), folder, opening.warc_options(options), jobs, executor)
        yield "documents", str(records.documents)
        yield "duplicates", f"{records.duplicates} (of one URL, the first is held)"
        yield from ((f"  {what}", str(count)) for what, count in sorted(records.counts.items()))
        yield from (("left out", why) for why in records.unreadable)
        yield "files", f"{records.files_read} read, {records.files_kept} unchanged since an earlier run"
    yield "index", str(folder)


def build_corpus(
    settings: BaseSettings, to: Path, manifest: Path | None, jobs: int, *, slim_links: bool
) -> Mapping[str, int]:
    """Write the corpus as a ClueWeb22 tree, by the settings of texts; return the counts. Raises InputError.

    The tree has its URL index afterwards, so that seeds can be given as URLs.

    ``manifest`` and ``slim_links`` as in :mod:`simulate.build`.
    """
    from simulate.build.plan import BuildOptions  # slow to import, and for builds alone
    from simulate.build.tree import build_tree  # likewise

    options = read_options(settings)
    source = opening.open_corpus(settings)
    source.check()
    build_options = BuildOptions(
        options.text_extractor,
        always_extract=options.simulation_text == "extracted",
        default_date=opening.NO_DATE,
        time_limit=PAGE_SECONDS,
        slim_links=slim_links,
    )
    counts = build_tree(source, to, build_options, manifest=manifest, jobs=jobs)
    build_url_index(opening.clueweb22_in(to, options, opening.largest_page(settings)), opening.index_folder(to), jobs)
    return counts


def rank_pages(settings: BaseSettings) -> dict[str, float]:
    """Compute the harmonic centrality of all pages of the corpus. Raises InputError."""
    corpus = opening.open_corpus(settings)
    corpus.check()
    corpus.require("outlinks")
    return page_ranks(corpus, progress=wants_bar(read_options(settings).progress_bar))

"""The texts of archive files, for the tools that take texts from WARC files of any origin."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError, MissingRecord, NoPage
from crawl4llm.base.pages import Corpus
from crawl4llm.base.processes import cores
from crawl4llm.optouts import from_text, reason_against_training, said_in_html
from crawl4llm.scoring import EXTRACTORS, extract_text
from simulate import WarcCorpus, build_warc_index, index_folder, largest_page, list_files

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from simulate import IndexSummary


@dataclass(frozen=True)
class TextTaker:
    """Settings of a worker process: pickled if processes are spawned, inherited if they are forked."""

    corpus: Corpus
    extractor: str
    clean_text: bool
    """True to take the corpus's own text; False to take the HTML, and the text only of pages without HTML."""


def page_text(taker: TextTaker, key: str) -> str:
    """Return the text of a page. Raises PageError."""
    if taker.clean_text:
        return taker.corpus.text(key)
    with suppress(MissingRecord):
        return extract_text(taker.corpus.html(key), EXTRACTORS[taker.extractor])
    return taker.corpus.text(key)


def text_to_learn(taker: TextTaker, key: str) -> str:
    """Return the text of a page that may be trained on. Raises PageError, for others with the signal that decides."""
    page = taker.corpus.page(key)
    said = [*from_text(page.opt_outs), *said_in_html(page.html or b"", "")]
    if reason := reason_against_training(said):
        raise NoPage(f"{key}: {reason}", reason, wanted=False)
    return page_text(taker, key)


def open_archives(path: Path, settings: BaseSettings) -> tuple[WarcCorpus, IndexSummary]:
    """Open archive files, given as a folder or a pattern, and index them if needed. Returns the counts of the indexing
    too. Raises InputError."""
    index = index_folder(path)
    try:
        found = build_warc_index(list_files(path), index, processes=cores())
        return WarcCorpus(path, index, largest=largest_page(settings)), found
    except InputError as error:
        raise InputError(str(error).removeprefix("CORPUS ")) from None

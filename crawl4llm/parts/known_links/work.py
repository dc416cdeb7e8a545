"""Answers for known pages (KNOWN_LINKS): their links, from a file, in the place of a request.

A known page is queued and leased as any other page, because its score decides when its links are followed; but it
waits for no owner. Its lease ends without a request: the crawl takes the page from this part, follows its links and
drops it as ``known_page``. Redirects that lead to it end there too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.errors import InputError, Why
from crawl4llm.base.pages import Corpus, Link, PageRecord
from crawl4llm.base.reasons import KNOWN_PAGE
from crawl4llm.frontier import UNREQUESTED, Entry
from crawl4llm.parts.known_links.file import NAME, KnownLinks, links_kind
from crawl4llm.parts.part import Answered, Part, Refusal
from crawl4llm.policies import Candidate, CrawledPage, Pieces

logger = logging.getLogger(__name__)

_A_URL: Final = "http://a.example/"
"""A document key of any corpus whose keys are URLs."""


class KnownLinksPart(Part):
    """See the module."""

    name = "known_links"

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._file = KnownLinks(Path(str(options.known_links)))
        self._refusal = Refusal(KNOWN_PAGE, Why(f"{NAME} {self._file.path.name}"))
        self._resolve: Callable[[str], str | None] = lambda url: url
        self._marks = options.mixture is None
        """True if queued documents that are known are marked by their cell, which MIXTURE uses for classes."""
        scored = len(self._file) - self._file.unscored
        logger.info("%s %s: %s pages, %s of them with a score", NAME, self._file.path, f"{len(self._file):,}", scored)

    def identity(self) -> Mapping[str, Any]:
        return {"known_links": self._file.identity}

    def meet(self, corpus: Corpus) -> None:
        by_url, told = corpus.is_key(_A_URL), self._file.corpus
        if by_url != (told is None) or (told is not None and told != corpus.name):
            here = "URLs" if by_url else f"keys of {corpus.name}"
            raise InputError(
                f"{NAME} {self._file.path} is of another corpus: it names documents by "
                f"{'URLs' if told is None else f'keys of {told}'}, and this crawl by {here}; {links_kind().advice}"
            )
        self._resolve = corpus.resolve

    def begin(self) -> None:
        self._of_parents: MutableMapping[str, Any] = {}
        """Influence scores of the pages on which queued known pages without a score were found, by numbers of these."""

    def keep_in(self, pieces: Pieces) -> None:
        self._of_parents = pieces.mapping("known_links", lambda value: isinstance(value, float), seldom_read=True)

    def found(self, page: CrawledPage, new: Sequence[Candidate]) -> None:
        if page.influence is None or not self._file.unscored:
            return
        for candidate in new:
            number = self._file.find(candidate.key)
            if number is not None and self._file.score(number) is None:
                self._of_parents[str(number)] = float(page.influence)

    def place(self, entries: Sequence[Entry]) -> None:
        """Mark known documents: they wait for no owner."""
        if self._marks:
            for entry in entries:
                if self._file.find(entry.key) is not None:
                    entry.cell = UNREQUESTED

    def answers(self, key: str) -> int | None:
        number = self._file.find(key)
        return None if number is None else self._file.size(number)

    def is_answered(self, entry: Entry) -> bool:
        return entry.cell == UNREQUESTED if self._marks else self._file.find(entry.key) is not None

    def known_influence(self, key: str) -> float | None:
        if (number := self._file.find(key)) is None:
            return None
        score = self._file.score(number)
        return self._of_parents.get(str(number)) if score is None else score

    def answer(self, key: str) -> Answered:
        number = self._file.find(key)
        assert number is not None, f"{key} is not known"
        page, influence = self._file.page(number, key), self.known_influence(key)
        page.outlinks = list(self._with_keys(page))
        self._of_parents.pop(str(number), None)
        return Answered(page, influence, self._refusal)

    def _with_keys(self, page: PageRecord) -> Iterator[Link]:
        """Yield the links of a page with the keys that the corpus of the crawl has for their targets."""
        for link in page.outlinks or ():
            key = link.key if self._file.corpus is not None else self._resolve(link.url)
            if key != page.key:
                yield link if key == link.key else link._replace(key=key)

    def lines(self, figures: Mapping[str, float | None]) -> Iterator[str]:
        yield f"  known pages      {int(figures.get(f'dropped/{KNOWN_PAGE}') or 0):,}, whose links were followed"

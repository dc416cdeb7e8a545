"""Looks for the text of each page among those of KNOWN_TEXTS, and ends a crawl that finds nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawl4llm.parts.known_texts import ALL_KNOWN, KNOWN_AT_FIRST, Settings
from crawl4llm.parts.known_texts.texts import KnownTexts
from crawl4llm.parts.part import Needs, Part, Rated
from crawl4llm.scoring import TextSet, require_library

if TYPE_CHECKING:
    from crawl4llm.frontier import Entry


class KnownTextsPart(Part):
    """See the module."""

    name = "known_texts"

    def __init__(self, options: Settings, texts: TextSet | None = None) -> None:
        """``texts``: in place of those in the file that the settings name. Raises InputError."""
        super().__init__(options)
        require_library("KNOWN_TEXTS", "leave it out")
        self._texts: TextSet = KnownTexts.open(Path(str(options.known_texts))) if texts is None else texts

    def begin(self) -> None:
        self._all_known: int | None = 0
        """Pages that no seed is whose texts were looked up, all of them known; None if one is not."""

    def needs(self) -> Needs:
        return Needs(signature=True, known_texts=self._texts)

    def identity(self) -> Mapping[str, Any]:
        return {"known_texts": self._texts.identity}

    def rated(self, place: int, page: Rated) -> None:
        self.counts["pages/known_text"] += page.known
        page.compare(is_new=not page.known)
        page.line["known_text"] = page.known
        if page.known:
            page.metadata["known-text"] = "true"

    def crawled(self, entry: Entry, page: Rated) -> None:
        if self._all_known is not None and entry.parent is not None and page.novel is not None:
            self._all_known = self._all_known + 1 if page.known else None

    def finished(self) -> str | None:
        return ALL_KNOWN if self._all_known is not None and self._all_known >= KNOWN_AT_FIRST else None

    def lines(self, figures: Mapping[str, float | None]) -> Iterator[str]:
        known, crawled = (int(figures.get(f"pages/{name}") or 0) for name in ("known_text", "crawled"))
        yield f"  known texts      {known:,} of {crawled:,} pages"

    def save(self) -> Any:
        return {"all_known": self._all_known}

    def load(self, state: Any) -> None:
        self._all_known = state["all_known"]

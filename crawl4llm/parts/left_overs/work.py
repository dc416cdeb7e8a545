"""Lowers the influence of pages whose text is left-overs (LOWER_LEFT_OVERS).

A model of prose has seen few texts such as ``[edit]``, menus and lists of links, and may score them at 0.9. The mean
number of words a line, without lines that consist of links, distinguishes them. Of 1,059 real pages whose text by
trafilatura scored above 0.5, 20 had fewer than two words a line, and all of these were left-overs. Pages of code and
tables had more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crawl4llm.parts.left_overs import LINKS, SHORT_LINES
from crawl4llm.parts.part import Needs, Part, Rated
from crawl4llm.scoring import Lines

FEWEST_WORDS: Final = 2.0
"""Words a line, without links, from which on an influence is kept; at one word less it is 0, linear between."""


def kept_share(lines: Lines) -> float:
    """Return the part of a page's influence that is kept, from 0 to 1, by the lines of its text."""
    return min(max(lines.unlinked_words - (FEWEST_WORDS - 1), 0.0), 1.0)


def reason_of(lines: Lines) -> str:
    """Return why a text is left-overs."""
    return SHORT_LINES if lines.words < FEWEST_WORDS else LINKS


class LeftOvers(Part):
    """See the module."""

    name = "left_overs"

    def needs(self) -> Needs:
        return Needs(lines=True)

    def identity(self) -> Mapping[str, Any]:
        return {"lower_left_overs": True}

    def rated(self, place: int, page: Rated) -> None:
        page.line |= {"left_overs": None, "lowered_from": None}
        # an influence below 0, of a scorer of one's own, has no part of it that is lower
        if page.lines is None or page.influence is None or page.influence <= 0:
            return
        share = kept_share(page.lines)
        if share < 1:
            reason = reason_of(page.lines)
            self.counts["pages/left_overs"] += 1
            self.counts[f"left_overs/{reason}"] += 1
            page.line |= {"left_overs": reason, "lowered_from": page.influence}
            page.metadata |= {"left-overs": reason, "lowered-from": page.influence}
            page.influence *= share

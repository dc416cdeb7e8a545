"""The lines of a text: their length, and the share of links in them. They distinguish navigation, lists of links and
single words such as ``[edit]`` from running text, in any language."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

_BYTES_A_WORD: Final = 6
"""Bytes of UTF-8 that count as a word, a blank included, because scripts without blanks have no other measure."""
_SEPARATORS = re.compile("[|\u00b7\u2022\u00bb\u203a\t]")
"""Separators of links in a line, or of cells in a table row."""
_WORD = re.compile(r"\w+")


class Lines(NamedTuple):
    """Figures of the lines of a text, without blank ones."""

    words: float
    """Mean words a line; a word is six bytes."""
    linked: float
    """Share of the text in lines that consist of links, from 0 to 1."""

    @property
    def unlinked_words(self) -> float:
        """Mean words a line, without lines that consist of links."""
        return self.words * (1 - self.linked)


def lines_of(text: str, link_texts: Iterable[str]) -> Lines | None:
    """Return figures of a text, with the texts of the links on its page; None for a blank text.

    A line consists of links if it is the text of one, or of several with separators between. Only letters and digits
    are compared.
    """
    links = {_letters(one) for one in link_texts} - {""}
    in_order = sorted(links)
    lines = count = linked = 0
    for line in text.splitlines():
        if size := len(" ".join(line.split()).encode("utf-8", "replace")):
            lines, count = lines + 1, count + size
            linked += size if _is_linked(line, links, in_order) else 0
    return Lines(count / lines / _BYTES_A_WORD, linked / count) if lines else None


def _is_linked(line: str, links: set[str], in_order: Sequence[str]) -> bool:
    """Return whether a line is made of links; ``links``: their letters, which are given ``in_order`` too."""
    first = _WORD.search(line)
    if first is None or not _begins(first[0], in_order):
        return False  # as of most lines, which need not be read to their end
    return links.issuperset(filter(None, map(_letters, _SEPARATORS.split(line))))


def _begins(word: str, in_order: Sequence[str]) -> bool:
    at = bisect_left(in_order, word)
    return at < len(in_order) and in_order[at].startswith(word)


def _letters(text: str) -> str:
    return "".join(_WORD.findall(text))

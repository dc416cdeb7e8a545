"""Choosing a page's text: that of one extractor, unless the text of another shows that it is bad.

Trafilatura keeps less boilerplate than resiliparse, but some pages defeat it. If a page has its paragraphs in ``div``
elements, it may keep only the part of a sentence after a link. If it finds too little, it gives all texts of the page,
navigation included, each on its own line. Three signs tell such pages. They need no words of any language, and no
letter case. The limits were found on the half of trafilatura's evaluation set and of the Debian handbook that ``python
-m benchmarks.text`` does not report.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

LEAST_SHARE: Final = 0.4
"""Least share of the other text's length, without white space."""
_LITTLE: Final = 100
"""Characters, without white space, of a text that is next to nothing: a title, a date."""
_MORE: Final = 4
"""Least ratio of the length of the text with comments."""
_LINES: Final = 2
"""Lines that are examined: the first ones that are long enough."""
_SHORTEST_LINE: Final = 15
"""Least characters of a line that is searched: shorter ones are found by chance."""
_LOOKED_FOR: Final = 40
"""Characters of a line's beginning that are searched."""
_BEFORE: Final = 20
"""Characters before it in the other text that are examined."""
_LEAST_LETTERS: Final = 3
"""Least letters among these: a number or a bullet does not begin a sentence."""


def better_text(text: str, other: str, *, is_whole_page: bool = False) -> str:
    """Return ``text``, or ``other`` if ``text`` is much shorter or begins within a sentence.

    ``is_whole_page``: ``text`` is all that the page has; then ``other`` is better unless it is blank.
    """
    if is_whole_page and other.strip():
        return other
    return other if _is_short(text, other) or _is_cut(text, other) else text


def is_little(text: str, *, beside: str | None = None) -> bool:
    """Return whether a text is next to nothing; ``beside``: compared with the text that includes comments. Some forums
    mark up posts as comments, and have nothing else."""
    size = len(_squeezed(text))
    return size < _LITTLE and (beside is None or _MORE * size < len(_squeezed(beside)))


def _is_short(text: str, other: str) -> bool:
    return len(_squeezed(text)) < LEAST_SHARE * len(_squeezed(other))


def _is_cut(text: str, other: str) -> bool:
    """Return whether one of the first lines begins within a line of the other text, and the text lacks what stands
    there before it."""
    beginnings = (line[:_LOOKED_FOR] for line in _squeezed_lines(text) if len(line) >= _SHORTEST_LINE)
    lines, whole = "\n".join(("", *_squeezed_lines(other))), _squeezed(text)
    return any(_with_before(begin, lines) not in whole for begin in islice(beginnings, _LINES))


def _with_before(begin: str, lines: str) -> str:
    """Return the beginning of a line with the characters before it in another text. Empty if a line there begins with
    it, if no line has it, or if too few letters precede it."""
    at = -1 if f"\n{begin}" in lines else lines.find(begin)
    if at < 0:
        return ""
    before = lines[max(lines.rfind("\n", 0, at) + 1, at - _BEFORE) : at]
    return before + begin[:_SHORTEST_LINE] if sum(map(str.isalpha, before)) >= _LEAST_LETTERS else ""


def _squeezed_lines(text: str) -> Iterator[str]:
    return filter(None, map(_squeezed, text.splitlines()))


def _squeezed(text: str) -> str:
    """Return a text without white space, of which extractors leave different amounts."""
    return "".join(text.split())

"""Recognises the software of sites by the marks of their pages.

A site is a host, and the path below which the software lies. Two pages with a mark are enough, or one with marks of two
kinds. If more pages there have no mark than have one, the site is no longer recognised. So a page with false marks, or
of another site on the same host, does not keep good pages from being fetched for long.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from crawl4llm.base.software_marks import Mark

_MOST: Final = 8
"""Most kinds of software of a host that are noted."""
_LONGEST_ROOT: Final = 200
_LONGEST_HOST: Final = 300
_ENOUGH: Final = 2
"""Pages with a mark, or kinds of marks on a page, that are enough."""
_MOST_PAGES: Final = 1 << 20


class Sites:
    """The software of hosts: a row for each one of which a page of the host had a mark.

    A row has a name and the path below which the software lies. It counts the pages there with marks of it, and those
    without any mark. It tells whether one page had marks of two kinds: ``["mediawiki", "/wiki/", 3, 0, true]``. A host
    has 8 rows at most, and none if no page of it had a mark.
    """

    def __init__(self, wanted: Collection[str]) -> None:
        """``wanted``: the software to recognise."""
        self._wanted = frozenset(wanted)
        self.stored: MutableMapping[str, Any] = {}
        """The rows by host; may lie in a store."""

    def learn(self, url: str, marks: Sequence[Mark]) -> bool:
        """Note the marks of a page; return whether its site is now recognised and was not before."""
        host = _host_of(url)
        before = self.stored.get(host)
        if not host or (not marks and before is None):
            return False
        rows = {row[0]: row for row in before or ()}
        folder, was = _folder(url), {name for name, _ in _recognised(rows.values())}
        if marks:
            for name in dict.fromkeys(mark.software for mark in marks):
                if name in self._wanted and (name in rows or len(rows) < _MOST):
                    own = [mark for mark in marks if mark.software == name]
                    sure = len({mark.kind for mark in own}) >= _ENOUGH
                    places = [folder, *(mark.root for mark in own if mark.root)]
                    rows[name] = _marked(rows.get(name), name, places, sure=sure)
        else:
            rows = {row[0]: _unmarked(row) if folder.startswith(row[1]) else row for row in rows.values()}
        if rows:
            self.stored[host] = list(rows.values())
        return any(name not in was for name, _ in _recognised(rows.values()))

    def software_of(self, url: str) -> Iterator[tuple[str, str]]:
        """Yield the recognised software of a URL's site, with the path below which it lies."""
        if (rows := self.stored.get(_host_of(url))) is not None:
            yield from _recognised(rows)


def _recognised(rows: Collection[Any]) -> Iterator[tuple[str, str]]:
    for name, root, marked, unmarked, sure in rows:
        if (sure or marked >= _ENOUGH) and marked >= unmarked:
            yield name, root


def _marked(row: Any, name: str, places: Sequence[str], *, sure: bool) -> list[Any]:
    """Return a row after a page with marks; ``places``: its folder, and those of its assets."""
    _, root, marked, unmarked, was_sure = row or [name, places[0], 0, 0, False]
    for place in places:
        root = _common(root, place)
    return [name, root, min(marked + 1, _MOST_PAGES), unmarked, was_sure or sure]


def _unmarked(row: Sequence[Any]) -> list[Any]:
    name, root, marked, unmarked, sure = row
    return [name, root, marked, min(unmarked + 1, _MOST_PAGES), sure]


def _host_of(url: str) -> str:
    """Return the host of a document key, with the port unless it is the default one; empty if it has none."""
    return url.partition("://")[2].partition("/")[0][:_LONGEST_HOST]


def _folder(url: str) -> str:
    path = "/" + url.partition("://")[2].partition("/")[2].partition("?")[0][:_LONGEST_ROOT]
    return path[: path.rfind("/") + 1]


def _common(one: str, other: str) -> str:
    """Return the folder in which both folders lie."""
    if other.startswith(one):
        return one
    place = 0
    for place, (left, right) in enumerate(zip(one, other, strict=False)):  # noqa: B007
        if left != right:
            break
    else:
        place = min(len(one), len(other))
    return one[: one.rfind("/", 0, place) + 1] or "/"


def is_row(value: Any) -> bool:
    """Return whether a value of the store has the rows of a host."""
    return isinstance(value, list) and len(value) <= _MOST and all(map(_is_of_software, value))


def _is_of_software(row: Any) -> bool:
    if not (isinstance(row, list) and len(row) == 5):
        return False
    name, root, marked, unmarked, sure = row
    counts = (type(number) is int and 0 <= number <= _MOST_PAGES for number in (marked, unmarked))
    return (
        isinstance(name, str)
        and isinstance(root, str)
        and root.startswith("/")
        and all(counts)
        and isinstance(sure, bool)
    )

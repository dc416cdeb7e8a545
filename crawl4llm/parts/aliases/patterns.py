"""Patterns of URLs: the parameters or path segments in which a URL differs from another one.

``?replytocom``: a parameter with any value; ``?do=edit``: with this value; ``?C&O``: several together; ``/print/``: a
segment of the path, in which ``#`` stands for digits (``/comment-page-#/``). The order of parameters and the separators
``&`` and ``;`` make no difference.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import Final, NamedTuple

from crawl4llm.base.urls import lookup_form
from crawl4llm.parts.aliases.tables import hashed

_LONGEST_URL: Final = 2000
_MOST_NAMES, _MOST_SEGMENTS, _LONGEST_WORD = 6, 8, 40
_MOST_IN_PAIRS: Final = 5
"""Most parameters of a URL of which any two are left out together; of more, only one or all are."""
_SEPARATOR = re.compile("[&;]")
_NAME = re.compile(rf"[^=]{{1,{_LONGEST_WORD}}}")
_VALUE = re.compile(r"[\w.~-]{0,20}", re.ASCII)
"""Values that a pattern may have. URLs do not share longer ones, such as addresses and titles."""
_DIGITS = re.compile("[0-9]+")
_LETTER = re.compile("[^\\W\\d_]|%")


class SplitUrl(NamedTuple):
    """A URL, split into the parts that patterns leave out."""

    host: str
    """Host without ``www.``, in which canonicals and links often differ."""
    segments: tuple[str, ...]
    parameters: tuple[str, ...]

    @property
    def form(self) -> str:
        """The URL under which its page is known; URLs that the web treats as one have one form."""
        query = f"?{'&'.join(sorted(self.parameters))}" if self.parameters else ""
        return f"{'/'.join((self.host, *self.segments))}{query}"

    @property
    def words(self) -> frozenset[str]:
        """The parts of patterns: names of parameters, names with values, and segments."""
        pairs = [_name_and_value(parameter) for parameter in self.parameters]
        words = {name for name, _ in pairs} | {f"{name}={value}" for name, value in pairs}
        return frozenset(words.union(f"/{_word_of(segment)}/" for segment in self.segments))


class Removal(NamedTuple):
    """A URL without some part, and the pattern of that part."""

    form: str
    """Form of the URL without the part."""
    by_name: str
    """The pattern of names, or the segment's."""
    by_value: str
    """The pattern of names with their values; empty for segments and for values that other URLs would not share."""
    value: int
    """A number for the removed values or segment."""
    is_last: bool = False
    """True for the last segment of the path, which few URLs share."""

    @property
    def in_query(self) -> bool:
        """True if the URL lacks parameters."""
        return self.by_name.startswith("?")


def split_url(url: str) -> SplitUrl | None:
    """Return the parts of a URL; None if its scheme is not http or https, or it is too long."""
    if len(url) > _LONGEST_URL or not url.startswith(("http://", "https://")):
        return None
    path, _, query = lookup_form(url).partition("?")
    host, *segments = path.split("/")
    return SplitUrl(host.removeprefix("www."), tuple(segments), tuple(filter(None, _SEPARATOR.split(query))))


def removals(url: SplitUrl) -> Iterator[Removal]:
    """Yield URLs without a part of a URL: each parameter, any two, all; each segment that has letters. A URL with more
    than six names of parameters keeps them, and one with a single segment keeps that."""
    pairs = [(parameter, *_name_and_value(parameter)) for parameter in url.parameters]
    names = list(dict.fromkeys(name for _, name, _ in pairs))
    if 0 < len(names) <= _MOST_NAMES and all(map(_NAME.fullmatch, names)):
        for some in _some_of(names):
            left_out = [(name, value) for _, name, value in pairs if name in some]
            rest = url._replace(parameters=tuple(parameter for parameter, name, _ in pairs if name not in some))
            yield Removal(
                rest.form, "?" + "&".join(sorted(some)), _by_value(left_out), hashed(*map("=".join, sorted(left_out)))
            )
    if 1 < len(url.segments) <= _MOST_SEGMENTS:
        for place, segment in enumerate(url.segments):
            is_twice = place > 0 and segment == url.segments[place - 1]  # what is left was yielded with the first one
            if not is_twice and len(segment) <= _LONGEST_WORD and _LETTER.search(segment):
                rest = url._replace(segments=url.segments[:place] + url.segments[place + 1 :])
                yield Removal(rest.form, f"/{_word_of(segment)}/", "", hashed(segment), place == len(url.segments) - 1)


def holds(pattern: str, words: Collection[str]) -> bool:
    """Return whether a URL with these words (:attr:`SplitUrl.words`) has a pattern."""
    if pattern.startswith("/"):
        return pattern in words
    return all(word in words for word in pattern[1:].split("&"))


def without(url: str, patterns: Collection[str]) -> str:
    """Return a URL without the parameters and path segments of these patterns."""
    split = split_url(url)
    if split is None:
        return url
    words = split.words
    found = [pattern for pattern in patterns if holds(pattern, words)]
    if not found:
        return url
    names = {name for pattern in found if pattern.startswith("?") for name in pattern[1:].split("&")}
    path, _, query = url.partition("?")
    scheme, _, rest = path.partition("://")
    host, *segments = rest.split("/")
    segments = [segment for segment in segments if f"/{_word_of(segment)}/" not in found]
    kept = [one for one in _SEPARATOR.split(query) if one and names.isdisjoint((one.partition("=")[0], one))]
    path = f"{scheme}://{'/'.join((host, *segments))}" if segments else f"{scheme}://{host}/"
    return f"{path}?{'&'.join(kept)}" if kept else path


def _some_of(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the sets of names that are left out together."""
    yield from ((name,) for name in names)
    if 2 < len(names) <= _MOST_IN_PAIRS:
        yield from combinations(names, 2)
    if len(names) > 1:
        yield tuple(names)


def _by_value(left_out: Sequence[tuple[str, str]]) -> str:
    if not all(_VALUE.fullmatch(value) for _, value in left_out):
        return ""
    return "?" + "&".join(sorted({f"{name}={value}" for name, value in left_out}))


def _name_and_value(parameter: str) -> tuple[str, str]:
    name, _, value = parameter.partition("=")
    return name, value


def _word_of(segment: str) -> str:
    return _DIGITS.sub("#", segment)

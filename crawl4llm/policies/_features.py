"""Features of documents that are known before the fetch: of their URLs and of the anchors of links to them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from zlib import crc32

from crawl4llm.base.domains import domain_of
from crawl4llm.base.urls import host_of

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\x00-\x7f]+")
"""Words also end where a capital follows (``userGuide``), and where digits begin."""
_CASES = (re.compile("[a-z]+"), "a"), (re.compile("[A-Z]+"), "A"), (re.compile("[0-9]+"), "0")

_MOST_FOLDERS: Final = 8
_MOST_URL_WORDS: Final = 24
_MOST_ANCHOR_WORDS: Final = 16
_DEEPEST: Final = 9
"""Documents of this depth and deeper ones share a feature."""
_LONGEST_EXTENSION: Final = 8


class UrlFeatures(NamedTuple):
    """The features of a page that its URL gives."""

    places: list[int]
    """See :func:`places_of`."""
    hashes: list[int]
    """Hashes of the places, host and domain, the words of path, file name and query, and the links from a seed."""


class _Folder(NamedTuple):
    """The features that the pages of a folder share."""

    name: str
    """Host and path, without the innermost ones of too many folders."""
    places: list[int]
    """Hashes of the host, then of each folder, from wide to narrow."""
    hashes: list[int]
    """These, and those of the rest that is known of host and folders."""


def places_of(url: str) -> list[int]:
    """Return hashes of where a page lies, from wide to narrow: its host, then each folder of its path."""
    host, path, _ = _parts(url)
    return list(_folder(host, _divided(path)[0]).places)


def _divided(path: str) -> tuple[str, str]:
    """Return the folders of a path, each with a slash at its end, and the file name."""
    inner = path.removeprefix("/")
    end = inner.rfind("/") + 1
    return inner[:end], inner[end:]


@lru_cache(maxsize=1024)
def _folder(host: str, path: str) -> _Folder:
    """Return the features of a folder; pages of one folder often come together."""
    folders = path.split("/")[:-1][:_MOST_FOLDERS]
    names = [f"{host}/{'/'.join(folders[:end])}" for end in range(len(folders) + 1)]
    places = [*_hashes("host", [host]), *_hashes("folder", names[1:])]
    hashes = [
        *_host_features(host),
        *places,
        *_hashes("folder word", set(_words("/".join(folders), _MOST_URL_WORDS))),
        *_hashes(f"folders {host}", [str(len(folders))]),
    ]
    return _Folder(names[-1], places, hashes)


def url_features(url: str, depth: int) -> UrlFeatures:
    """Return the features of a URL ``depth`` links from a seed."""
    host, path, query = _parts(url)
    folders, file = _divided(path)
    folder = _folder(host, folders)
    stem, _, extension = file.rpartition(".") if "." in file else (file, "", "")
    words = _words(stem, _MOST_URL_WORDS)
    distinct = set(words)
    hashes = [
        *folder.hashes,
        *_hashes("file word", distinct),
        *_hashes(f"file word {host}", distinct),
        *_hashes("file topic", [f"{folder.name}/{words[0]}"] if len(words) > 1 else []),
        *_hashes("extension", [extension[:_LONGEST_EXTENSION].lower()]),
        *_hashes("query word", set(_words(query, _MOST_URL_WORDS)) if query else ()),
        *_hashes("links from seed", [str(min(depth, _DEEPEST))]),
    ]
    return UrlFeatures(folder.places, hashes)


def anchor_features(anchor: str, url: str, *, boilerplate: bool) -> frozenset[int]:
    """Return features of a link to ``url``: words and look of its anchor, and whether it is in a header or footer."""
    return _anchor_features(anchor, host_of(url), "boilerplate" if boilerplate else "content")


@lru_cache(maxsize=4096)
def _anchor_features(anchor: str, host: str, part: str) -> frozenset[int]:
    words = set(_words(anchor, _MOST_ANCHOR_WORDS))
    hashes = [
        *_hashes("anchor word", words),
        *_hashes(f"anchor word {host}", words),
        *_hashes("anchor length", [str(min(len(anchor.split()), 6))]),
        *_hashes("anchor look", [_look(anchor)]),
        *_hashes("part", [part, f"{host} {part}"]),
    ]
    return frozenset(hashes)


def parents_features(mean: float, best: float) -> list[int]:
    """Return features of what links to a document: the targets of those pages, 0 to 1, in eighths."""
    return [*_hashes("parents", [str(round(8 * mean))]), *_hashes("best parent", [str(round(8 * best))])]


def _parts(url: str) -> tuple[str, str, str]:
    """Return host, path and query of a URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return host_of(url), "", ""
    return host_of(url), parts.path, parts.query


def _words(text: str, most: int) -> list[str]:
    """Return words in lower case; numbers by their length only, since most occur once."""
    return [f"#{len(word)}" if word.isdigit() else word.lower() for word in _WORD.findall(text)[:most]]


def _look(text: str) -> str:
    """Return a text with its runs of letters and digits cut to one character each: ``std::sort()`` is ``a::a()``."""
    for run, character in _CASES:
        text = run.sub(character, text)
    return text[:16]


@lru_cache(maxsize=1024)
def _host_features(host: str) -> list[int]:
    return [*_hashes("host", [host]), *_hashes("domain", [domain_of(host)]), *_hashes("label", host.split("."))]


def _hashes(kind: str, values: Iterable[str]) -> list[int]:
    start = _start_of(kind)
    return [crc32(value.encode(errors="backslashreplace"), start) for value in values]


@lru_cache(maxsize=4096)
def _start_of(kind: str) -> int:
    return crc32(f"{kind}\t".encode(errors="backslashreplace"))

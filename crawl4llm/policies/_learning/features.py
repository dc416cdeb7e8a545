"""What a link tells of its target before the fetch, as numbers that a model can learn weights for.

A feature is a hash (CRC-32) of what it says; the model takes as many of its bits as it has room for (feature hashing:
Weinberger et al. 2009). Most are given twice, once for the whole web and once for the host alone: a word such as
``tutorial`` means much the same anywhere, while ``ref`` means what a site uses it for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
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
"""Documents so many links from a seed, and more, are one."""


def places_of(url: str) -> list[int]:
    """Where a page lies, from wide to narrow: its host, then each folder of its path."""
    host, folders, _ = _parts(url)
    return [*_hashes("host", [host]), *_hashes("folder", _paths(host, folders))]


def url_features(url: str, depth: int) -> list[int]:
    """Features of a URL ``depth`` links from a seed: its host and domain, the folders of its path, the words of its
    path, file name and query."""
    host, folders, file = _parts(url)
    stem = file.rpartition(".")[0] if "." in file else file
    stem_words = _words(stem, _MOST_URL_WORDS)
    topic = [f"{host}/{'/'.join(folders)}/{stem_words[0]}"] if len(stem_words) > 1 else []
    return [
        *_hashes("host", [host]),
        *_hashes("domain", [domain_of(host)]),
        *_hashes("label", host.split(".")),
        *_hashes("folder", _paths(host, folders)),
        *_hashes("folder word", set(_words("/".join(folders), _MOST_URL_WORDS))),
        *_hashes("file word", set(stem_words)),
        *_hashes(f"file word {host}", set(stem_words)),
        *_hashes("file topic", topic),
        *_hashes(f"folders {host}", [str(len(folders))]),
        *_hashes("query word", set(_words(url.partition("?")[2], _MOST_URL_WORDS))),
        *_hashes("links from seed", [str(min(depth, _DEEPEST))]),
    ]


def anchor_features(anchor: str, url: str, *, boilerplate: bool) -> list[int]:
    """Features of a link to ``url``: the words and the look of its anchor, and whether it is in a header or footer."""
    host = host_of(url)
    words = set(_words(anchor, _MOST_ANCHOR_WORDS))
    part = "boilerplate" if boilerplate else "content"
    return [
        *_hashes("anchor word", words),
        *_hashes(f"anchor word {host}", words),
        *_hashes("anchor length", [str(min(len(anchor.split()), 6))]),
        *_hashes("anchor look", [_look(anchor)]),
        *_hashes("part", [part, f"{host} {part}"]),
    ]


def _parts(url: str) -> tuple[str, list[str], str]:
    """Host, folders and file name of a URL."""
    try:
        path = urlsplit(url).path
    except ValueError:
        path = ""
    *folders, file = path.removeprefix("/").split("/")
    return host_of(url), folders[:_MOST_FOLDERS], file


def _paths(host: str, folders: list[str]) -> list[str]:
    return [f"{host}/{'/'.join(folders[:depth])}" for depth in range(1, len(folders) + 1)]


def _words(text: str, most: int) -> list[str]:
    """Words in lower case; numbers by their length only, since most occur once."""
    return [f"#{len(word)}" if word.isdigit() else word.lower() for word in _WORD.findall(text)[:most]]


def _look(text: str) -> str:
    """A text with its runs of letters and digits cut to one character each: ``std::sort()`` is ``a::a()``."""
    for run, character in _CASES:
        text = run.sub(character, text)
    return text[:16]


def _hashes(kind: str, values: Iterable[str]) -> list[int]:
    return [crc32(f"{kind}\t{value}".encode(errors="backslashreplace")) for value in values]

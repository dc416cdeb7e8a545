"""The known URLs (KNOWN_URLS), which are not fetched again: sets on disk, and lists in memory.

A URL is known by 64 bits of the BLAKE2b of its document key (:mod:`crawl4llm.base.urls`), or those of them that a set
stores (:mod:`crawl4llm.base.sorted_file`).
"""

from __future__ import annotations

import hashlib
import logging
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.compression import zstd
from crawl4llm.base.errors import InputError, Why, as_input_error
from crawl4llm.base.input_files import input_lines
from crawl4llm.base.reasons import KNOWN_URL
from crawl4llm.base.sorted_file import HashTable, SortedFile, fingerprint, is_sorted_file, known
from crawl4llm.base.terminal import harmless
from crawl4llm.base.urls import normalise_url, parse_url
from crawl4llm.frontier import Entry
from crawl4llm.parts.known_urls import Settings
from crawl4llm.parts.part import Part, Refusal
from crawl4llm.policies import Candidate

NAME: Final = "KNOWN_URLS"
"""The setting."""
URLS: Final = "urls"
URL_SCHEME: Final = "blake2b-64 of URLs by the URL Standard and RFC 3986"
MOST_LISTED: Final = 10_000_000
"""Most URLs of a list: they take 8 bytes of memory each, and some seconds of each start."""
_MOST_ODD: Final = 100_000
"""Lines at the beginning of a list after which it is refused if none is a URL."""


class KnownUrls:
    """The URLs of several sets and lists."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Open them. Raises InputError that names an unusable one."""
        self._files = [_KnownFile(Path(path)) for path in paths]

    def __len__(self) -> int:
        """Return the number of URLs; those in several files count several times."""
        return sum(len(one.fingerprints) for one in self._files)

    @property
    def identity(self) -> str:
        """The digests of the files, divided by commas."""
        return ",".join(sorted(one.identity for one in self._files))

    @property
    def error_rate(self) -> float:
        """The probability that an unknown URL is taken for a known one, and is lost."""
        return sum(one.fingerprints.error_rate for one in self._files)

    @property
    def lines(self) -> Iterator[str]:
        """A line on each file, for the log."""
        for one in self._files:
            rate = one.fingerprints.error_rate
            wrong = f"; 1 in {1 / rate:,.0f} others is taken for one of them" if rate else ""
            yield f"{NAME} {one.path}: {len(one.fingerprints):,} URLs{wrong}{one.fault}"

    def why(self, url: str) -> Why | None:
        """Return the first file that has a URL; None if it is not known."""
        return next((Why(f"{NAME} {one.path.name}") for one in self._files if one.has(url)), None)


class _KnownFile:
    """A set or a list."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fault = ""
        self.fingerprints: HashTable | _Listed
        with as_input_error(f"{NAME} {path} cannot be read"):
            is_set = is_sorted_file(path)
        if is_set:
            found = SortedFile(path, known(URLS), URL_SCHEME, NAME)
            self.fingerprints, self.identity = HashTable(found, URLS), found.identity
        else:
            self.fingerprints, self.identity, self.fault = _read_list(path)

    def has(self, url: str) -> bool:
        """Return whether a URL is in it."""
        return url_fingerprint(url) in self.fingerprints


class _Listed:
    """The whole fingerprints of a list, in memory."""

    error_rate = 0.0

    def __init__(self, found: array[int]) -> None:
        import numpy as np  # not for crawls whose URLs are in sets

        self.sorted = array("Q", np.unique(np.frombuffer(found, dtype=np.uint64)).tobytes())

    def __len__(self) -> int:
        return len(self.sorted)

    def __contains__(self, wanted: int) -> bool:
        place = bisect_left(self.sorted, wanted)
        return place < len(self.sorted) and self.sorted[place] == wanted


def url_fingerprint(url: str) -> int:
    """Return the fingerprint of a URL, the same for any spelling of its document key."""
    return _fingerprint(normalise_url(url))


def _fingerprint(key: str) -> int:
    return fingerprint(key.encode("utf-8", "surrogatepass"))


def is_web_url(url: str) -> bool:
    """Return whether a text is a URL that can be crawled."""
    return parse_url(url) is not None


def listed_urls(path: Path, named_by: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a list, plain, gzip or Zstandard, with their numbers, without blank ones and comments (#).

    Raises InputError if the file cannot be read to its end.
    """
    number = 0
    try:
        for number, line in enumerate(input_lines(path, errors="surrogateescape", newline="\n"), 1):
            if (url := line.strip()) and not url.startswith("#"):
                yield number, url
    except OSError as error:
        raise InputError(f"{named_by} {path} cannot be read after line {number}: {error.strerror or error}") from None
    except (EOFError, zlib.error, zstd.ZstdError) as error:
        raise InputError(f"{named_by} {path} is damaged after line {number}: {error}") from None


def _read_list(path: Path) -> tuple[_Listed, str, str]:
    """Return the fingerprints of a list, its digest, and a note on skipped lines."""
    found, odd, first = array("Q"), 0, ""
    for number, url in listed_urls(path, NAME):
        if is_web_url(url):
            found.append(url_fingerprint(url))
        else:
            first = first or f"line {number} ({harmless(url[:60])!r})"
            odd += 1
            if odd >= _MOST_ODD and not found:  # of a bomb all lines would take minutes
                break
        if len(found) > MOST_LISTED:
            make = known(URLS, out=f"{path}.set", source=path).advice
            raise InputError(f"{NAME} {path} lists more than {MOST_LISTED:,} URLs; {make}")
    if not found:
        what = f"; {first} is no URL" if first else ""
        raise InputError(f"{NAME} {path} is neither a set of known URLs nor a list of any{what}; {known(URLS).advice}")
    listed = _Listed(found)
    identity = hashlib.sha256(listed.sorted.tobytes()).hexdigest()
    return listed, identity, f"; left out {odd:,} that are no URLs, the first is {first}" if odd else ""


logger = logging.getLogger(__name__)


class KnownUrlsPart(Part):
    """See the module. Known seeds, and targets of their redirects, are crawled."""

    name = "known_urls"

    def __init__(self, options: Settings) -> None:
        super().__init__(options)
        self._known = KnownUrls(options.known_urls)
        for line in self._known.lines:
            logger.info("%s", line)

    def identity(self) -> Mapping[str, Any]:
        return {"known_urls": self._known.identity}

    def admits(self, candidate: Candidate) -> Refusal | None:
        return self._refusal(candidate.key, candidate.url)

    def redirects(self, source: Entry, url: str) -> Refusal | None:
        return self._refusal(url, url) if source.depth else None

    def figures(self, figures: Mapping[str, float | None]) -> Mapping[str, float | None]:
        new = self.counts["links/new"] - self.counts[f"dropped/{KNOWN_URL}"]
        return {"links/taken_for_known": self._known.error_rate * new}

    def lines(self, figures: Mapping[str, float | None]) -> Iterator[str]:
        known, lost = int(figures.get(f"dropped/{KNOWN_URL}") or 0), figures["links/taken_for_known"]
        yield f"  known URLs       {known:,} dropped, of which {lost:.2g} are not known, by expectation"

    def _refusal(self, key: str, url: str) -> Refusal | None:
        """Return why a document is dropped; None if it is not known, or its links are known too."""
        why = self._known.why(key if "://" in key else url)  # keys may be ids
        if why is None or (self.answering is not None and self.answering.answers(key) is not None):
            return None
        return Refusal(KNOWN_URL, why)

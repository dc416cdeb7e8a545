"""The score cache: influence scores of a corpus's pages, kept on disk for all crawls and evaluations of it.

Each combination of corpus, model and text has one file, a table of slots of 32 bytes. A page's digest names a slot, and
its entry lies there or in one of the next 63. So an entry is found with one read and added with one write, for any size
of the table. Each entry has its own checksum, so processes share the file without locks. A killed process leaves whole
entries, and damage costs only the entries that it hits.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from crawl4llm.base.errors import MissingRecord
from crawl4llm.base.reasons import NO_HTML, NO_TEXT
from crawl4llm.base.version import __version__
from crawl4llm.scoring.rating import PageRater, Rating
from crawl4llm.scoring.text import extractor_identity

logger = logging.getLogger(__name__)

_FORMAT: Final = 1
"""Version of the entries, and of the extraction of text; another version has its own files."""
_ENTRY: Final = struct.Struct("<16sdII")
"""Digest of the page's key, score, index in _REASONS, CRC-32 of the fields before."""
_CHECKED: Final = _ENTRY.size - 4
_EMPTY: Final = bytes(_ENTRY.size)
_WINDOW: Final = 64 * _ENTRY.size
_SLOTS_PER_PAGE: Final = 3
"""Enough that a page finds all 64 slots of its window taken in one of 10^12 cases."""
_REASONS: Final = (None, NO_TEXT, MissingRecord.reason, NO_HTML)
"""Reasons that are properties of a page. Others are temporary (time limit, killed worker, disk error), depend on a
setting (DOWNLOAD_MAXSIZE), or can be repaired (damaged record), so they are determined again."""
_SCORED: Final = (None, NO_TEXT)
_NAME: Final = re.compile(r"[0-9a-f]{32}\.scores")
_LARGEST_FILE: Final = 1 << 30
"""Most bytes, holes included; in a table that is too small for its corpus, new entries replace old ones."""
_LARGEST_FOLDER: Final = 4 << 30


class ScoreCache:
    """The file for the scores that ``depends_on`` identifies, of a corpus of ``pages`` pages.

    It is opened when it is first used. If it cannot be opened, read or written, that is logged once, and from then on
    the cache is empty and stores nothing.
    """

    def __init__(self, folder: Path, depends_on: Mapping[str, Any], pages: int) -> None:
        self._made_of = folder, depends_on, pages
        identity = hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).digest()
        self.path = folder / f"{identity.hex()[:32]}.scores"
        self.found = self.added = 0
        """Scores that were found, and scores that were added."""
        self._hash = hashlib.blake2b(digest_size=16, key=identity)
        most = (_LARGEST_FILE - _WINDOW) // _ENTRY.size
        self._slots = min(max(pages, 1) * _SLOTS_PER_PAGE, most)
        self._fd: int | None = None
        self._is_new = self._opened = self._has_warned = False

    def __reduce__(self) -> tuple[type[ScoreCache], tuple[Path, Mapping[str, Any], int]]:
        return ScoreCache, self._made_of  # another process opens it anew

    @property
    def is_new(self) -> bool:
        """True if it was empty when it was opened, or cannot be used."""
        self._open()
        return self._is_new or self._fd is None

    def find(self, pages: Sequence[str]) -> list[Rating | None]:
        """Return the ratings of pages, in order; None for an unknown one."""
        if self.is_new:
            return [None] * len(pages)
        assert self._fd is not None
        try:
            ratings = [self._find(self._fd, page) for page in pages]
        except OSError as error:
            self._give_up(error)
            return [None] * len(pages)
        self.found += len(pages) - ratings.count(None)
        return ratings

    def add(self, pages: Sequence[str], ratings: Iterable[Rating]) -> None:
        """Store the ratings of pages, except those that may differ at another time."""
        self._open()
        for page, rating in zip(pages, ratings, strict=True):
            self.added += 1
            if self._fd is None or rating.reason not in _REASONS:
                continue
            try:
                self._add(self._fd, page, rating)
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        """Release the file handle."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self) -> None:
        if self._opened:
            return
        self._opened, size = True, self._slots * _ENTRY.size + _WINDOW
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._make_room(size)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
            found = os.fstat(self._fd).st_size
            if found != size:
                os.ftruncate(self._fd, size)  # what is no regular file fails here; holes take no room
                if found:
                    self._warn_of_damage()
            self._is_new = not found
            os.utime(self._fd)
        except OSError as error:
            self._give_up(error)

    def _make_room(self, size: int) -> None:
        """Remove other files, the least recently used first, until one of that size can stay beside them."""
        with os.scandir(self.path.parent) as entries:
            others = [entry for entry in entries if _NAME.fullmatch(entry.name) and entry.name != self.path.name]
        found = [(entry.stat(follow_symlinks=False), entry.path) for entry in others]
        total = size + sum(status.st_size for status, _ in found)
        for status, path in sorted(found, key=lambda file: file[0].st_mtime_ns):
            if total <= _LARGEST_FOLDER:
                break
            Path(path).unlink(missing_ok=True)
            total -= status.st_size

    def _find(self, fd: int, page: str) -> Rating | None:
        *_, window, at = self._look(fd, page)
        if at < 0:
            return None
        entry = window[at : at + _ENTRY.size]
        if not _is_whole(entry):
            self._warn_of_damage()
            return None
        _, score, reason, _ = _ENTRY.unpack(entry)
        return Rating(score if _REASONS[reason] in _SCORED else None, _REASONS[reason])

    def _add(self, fd: int, page: str, rating: Rating) -> None:
        digest, offset, window, at = self._look(fd, page)
        if at < 0 or at % _ENTRY.size:
            at = self._free(window)
        score = 0.0 if rating.score is None else rating.score
        entry = _ENTRY.pack(digest, score, _REASONS.index(rating.reason), 0)[:_CHECKED]
        os.pwrite(fd, entry + struct.pack("<I", crc32(entry)), offset + at)

    def _look(self, fd: int, page: str) -> tuple[bytes, int, bytes, int]:
        """Return a page's digest, the offset of its window, the content of that, and the digest's place in it, if
        any."""
        hashed = self._hash.copy()
        hashed.update(page.encode("utf-8", "surrogatepass"))
        digest = hashed.digest()
        offset = int.from_bytes(digest[:8], "little") % self._slots * _ENTRY.size
        window = os.pread(fd, _WINDOW, offset)
        return digest, offset, window, window.find(digest)

    def _free(self, window: bytes) -> int:
        """Return the first place without a valid entry; the first place if all are valid."""
        for at in range(0, len(window), _ENTRY.size):
            entry = window[at : at + _ENTRY.size]
            if entry == _EMPTY:
                return at
            if not _is_whole(entry):
                self._warn_of_damage()
                return at
        return 0

    def _warn_of_damage(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("SCORE_CACHE %s is damaged; lost scores are computed again", self.path)

    def _give_up(self, error: OSError) -> None:
        logger.warning("SCORE_CACHE %s is not used: %s", self.path, error.strerror)
        self.close()


def _is_whole(entry: bytes) -> bool:
    """Return whether an entry has a right checksum and possible values."""
    if len(entry) < _ENTRY.size:
        return False
    _, score, reason, check = _ENTRY.unpack(entry)
    return check == crc32(entry[:_CHECKED]) and reason < len(_REASONS) and math.isfinite(score)


def open_score_cache(folder: Path, rater: PageRater) -> ScoreCache:
    """Return the cache of a rater's influence scores: by corpus, model, label, and extractor with its versions."""
    scorer, extractor = rater.scorer, rater.extractor
    depends_on = {
        "format": [_FORMAT, __version__],
        "corpus": rater.corpus.identity(),
        "scorer": f"{type(scorer).__module__}.{type(scorer).__qualname__}",
        "model": scorer.digest,
        "label": getattr(scorer, "label", None),
        "extractor": extractor and extractor_identity(extractor),
    }
    return ScoreCache(folder, depends_on, len(rater.corpus))

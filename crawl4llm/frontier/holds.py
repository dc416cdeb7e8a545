"""The holds file: owners that may not be asked, and until when; it outlives the process, without commits.

It lies beside the store and has wall times. Each change is a line: a checksum, then the owner and the fields of a
:class:`Hold` as JSON; the last line of an owner counts. A damaged or incomplete line is skipped; fields missing at the
end of a line have their defaults. When the file has twice as many lines as are in force, it is rewritten.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from crawl4llm.base.errors import as_input_error
from crawl4llm.base.files import AppendFile, sync_path
from crawl4llm.base.input_files import parse_json
from crawl4llm.base.shapes import FLAG, NUMBER, fits, whole
from crawl4llm.base.whole_files import replacing

NAME = "owners.holds"
_LONGEST_LINE = 4096
"""Most bytes of a line; names have 253 characters at most."""
FAILURES_KEPT = 86_400.0
"""Seconds after which the failures of an owner are forgotten."""
_LEAST = 1000
"""Lines up to which the file is never rewritten."""


class Hold(NamedTuple):
    """The reasons why an owner may not be asked."""

    until: float = 0.0
    """Wall time, in seconds since 1970."""
    wait: float = 0.0
    """Seconds that were left when it was set; the wait is never longer, even if the wall clock is changed."""
    parked: bool = False
    failures: int = 0
    """Consecutive failed exchanges."""
    failed: float = 0.0
    """Wall time at which the failures were noted."""
    delay: float = 0.0
    """Crawl-delay in seconds for which it is parked; 0: parked for another reason, or not parked."""
    slowed: int = 0
    """The number of times that its delay is doubled."""
    slowed_at: float = 0.0
    """Wall time at which the doubling was noted."""

    def in_force(self, now: float) -> bool:
        """Return whether any of it applies at a wall time."""
        has_failed = self.failures > 0 and now - self.failed < FAILURES_KEPT
        is_slowed = self.slowed > 0 and now - self.slowed_at < FAILURES_KEPT
        return self.parked or self.until > now or has_failed or is_slowed


_SHAPES: Final = (NUMBER, NUMBER, FLAG, whole(), NUMBER, NUMBER, whole(0, 100), NUMBER)
"""Shapes of the fields of a Hold; a delay doubled a hundred times is longer than any that is obeyed."""


def hold_of(said: Any) -> Hold:
    """Return the hold in JSON from a file or store, which may come from anybody. Raises ValueError if it is not a
    hold."""
    if isinstance(said, list) and fits([said], _SHAPES):
        return Hold(*said)
    raise ValueError("no hold")


class OwnerHolds(Protocol):
    """Durable holds by owner."""

    def items(self) -> Iterator[tuple[str, Hold]]:
        """Yield owners with their holds in force."""

    def get(self, owner: str) -> Hold:
        """Return the hold of an owner, which may have expired."""

    def set(self, owner: str, hold: Hold) -> None:
        """Replace the hold of an owner. Raises InputError."""


class Holds:
    """Implements :class:`OwnerHolds` in the file."""

    def __init__(self, path: Path, *, fsync: bool = True, wall: Callable[[], float] = time.time) -> None:
        """Read the file, if it exists, without a change. Raises InputError."""
        self._path = path
        self._fsync = fsync
        self._wall = wall
        self._holds: dict[str, Hold] = {}
        self._lines = self._size = 0
        with as_input_error(f"{path} cannot be read"), suppress(FileNotFoundError):
            self._read()
        self._most = _LEAST + 2 * len(self._in_force())

    def items(self) -> Iterator[tuple[str, Hold]]:
        """Yield owners with their holds in force, in the order of their first line."""
        yield from self._in_force().items()

    def get(self, owner: str) -> Hold:
        """Return the hold of an owner, which may have expired."""
        return self._holds.get(owner, Hold())

    def set(self, owner: str, hold: Hold) -> None:
        """Replace the hold of an owner. Raises InputError."""
        self._holds[owner] = hold
        if self._lines >= self._most:
            self._write_anew()
            return
        with closing(AppendFile(self._path, self._size, private=True)) as file:
            file.append(_line(owner, hold))
            if self._fsync:
                file.sync()
        if self._fsync and not self._size:
            sync_path(self._path.parent)
        self._lines, self._size = self._lines + 1, file.size

    def _in_force(self) -> dict[str, Hold]:
        now = self._wall()
        return {owner: hold for owner, hold in self._holds.items() if hold.in_force(now)}

    def _read(self) -> None:
        with self._path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                if not line.endswith(b"\n"):
                    continue  # the last one, cut short, or a part of a damaged one; what follows the latter has an end
                self._size = file.tell()
                self._lines += 1
                try:
                    owner, hold = _parse(line)
                except ValueError:
                    continue
                self._holds[owner] = hold

    def _write_anew(self) -> None:
        """Write only holds that are in force."""
        self._holds = self._in_force()
        with as_input_error(f"cannot write {self._path}"), replacing(self._path, fsync=self._fsync, mode=0o600) as file:
            file.writelines(_line(owner, hold) for owner, hold in self._holds.items())
            self._size = file.tell()
        self._lines = len(self._holds)
        self._most = _LEAST + 2 * self._lines


class LastingWaits:
    """Writes holds of an index of owners at once. The index has times of a clock, the file wall times."""

    def __init__(self, holds: OwnerHolds, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        """``clock``: the index's; ``wall``: seconds since 1970."""
        self._holds, self.clock, self._wall = holds, clock, wall

    def items(self) -> Iterator[tuple[str, Hold]]:
        """Yield owners with their holds in force. ``wait`` is in seconds from now, ``failed`` and ``slowed_at`` are in
        seconds ago."""
        now = self._wall()
        for name, hold in self._holds.items():
            wait, failed, slowed = min(hold.until - now, hold.wait), now - hold.failed, now - hold.slowed_at
            yield name, hold._replace(wait=wait, failed=max(failed, 0.0), slowed_at=max(slowed, 0.0))

    def parked(self) -> Iterator[tuple[str, float]]:
        """Yield the parked owners with the delays for which they are parked."""
        return ((name, hold.delay) for name, hold in self._holds.items() if hold.parked)

    def hold(self, name: str, until: float, *, force: bool, failures: int | None) -> None:
        """See :meth:`crawl4llm.frontier.Owners.hold`. Raises InputError, like all methods that write."""
        wait = max(until - self.clock(), 0.0)
        before = hold = self._holds.get(name)
        if force or (wait and self._wall() + wait > before.until):
            hold = hold._replace(until=self._wall() + wait, wait=wait)
        if failures is not None:
            hold = hold._replace(failures=failures, failed=self._wall())
        if name and hold != before:
            self._holds.set(name, hold)

    def slow(self, name: str, times: int) -> None:
        """See :meth:`crawl4llm.frontier.Owners.slow`."""
        self._holds.set(name, self._holds.get(name)._replace(slowed=times, slowed_at=self._wall() if times else 0.0))

    def park(self, name: str, *, parked: bool, delay: float = 0.0) -> None:
        """Write whether an owner is parked."""
        self._holds.set(name, self._holds.get(name)._replace(parked=parked, delay=delay))


def _line(owner: str, hold: Hold) -> bytes:
    content = json.dumps([owner, *hold]).encode()
    return b"%08x %b\n" % (zlib.crc32(content), content)


def _parse(line: bytes) -> tuple[str, Hold]:
    """Return the content of a line. Raises ValueError if it is damaged."""
    checksum, _, content = line[:-1].partition(b" ")
    if int(checksum, 16) != zlib.crc32(content):
        raise ValueError("a damaged line")
    said = parse_json(content)
    if not isinstance(said, list) or not said or not isinstance(said[0], str):
        raise ValueError("a line without an owner")
    return said[0], hold_of(said[1:])

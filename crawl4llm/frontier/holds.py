"""The holds file: which owners may not be asked, until when; it outlives the process, and waits for no commit.

It lies beside the store, by wall time. Each change is a line: a checksum, then the owner and what a :class:`Hold` has,
as JSON; the last line of an owner counts. A line that is damaged or cut short is passed over; what a line lacks at its
end has its default. The file is written anew when it has grown to twice what is in force.
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
"""Bytes; names have 253 characters at most."""
FAILURES_KEPT = 86_400.0
"""Seconds after which the failures of an owner are forgotten."""
_LEAST = 1000
"""Lines that are no reason to write the file anew."""


class Hold(NamedTuple):
    """What keeps an owner from being asked."""

    until: float = 0.0
    """Wall time, in seconds since 1970."""
    wait: float = 0.0
    """Seconds that were left until then when it was set: no more, however the wall clock is changed."""
    parked: bool = False
    failures: int = 0
    """Exchanges that failed in a row."""
    failed: float = 0.0
    """Wall time at which they were noted."""
    delay: float = 0.0
    """Crawl-delay for which it is parked, in seconds; 0: not for that."""
    slowed: int = 0
    """The number of times that its delay is doubled."""
    slowed_at: float = 0.0
    """Wall time at which that was noted."""

    def in_force(self, now: float) -> bool:
        """Return whether it says anything at a wall time."""
        has_failed = self.failures > 0 and now - self.failed < FAILURES_KEPT
        is_slowed = self.slowed > 0 and now - self.slowed_at < FAILURES_KEPT
        return self.parked or self.until > now or has_failed or is_slowed


_SHAPES: Final = (NUMBER, NUMBER, FLAG, whole(), NUMBER, NUMBER, whole(0, 100), NUMBER)
"""Of the fields of a Hold; a delay that is doubled a hundred times is longer than any that is kept to."""


def hold_of(said: Any) -> Hold:
    """Return the hold that JSON from a file or store says. Raises ValueError if it says none: the file may have come
    from anybody."""
    if isinstance(said, list) and fits([said], _SHAPES):
        return Hold(*said)
    raise ValueError("no hold")


class OwnerHolds(Protocol):
    """Where is written which owners may not be asked."""

    def items(self) -> Iterator[tuple[str, Hold]]:
        """Yield owners with what is in force."""

    def get(self, owner: str) -> Hold:
        """Return what is written of an owner, which may be over."""

    def set(self, owner: str, hold: Hold) -> None:
        """Write down that this holds for an owner, and nothing else. Raises InputError."""


class Holds:
    """Implements :class:`OwnerHolds` in the file."""

    def __init__(self, path: Path, *, fsync: bool = True, wall: Callable[[], float] = time.time) -> None:
        """Read the file, where there is one; nothing is changed. Raises InputError."""
        self._path = path
        self._fsync = fsync
        self._wall = wall
        self._holds: dict[str, Hold] = {}
        self._lines = self._size = 0
        with as_input_error(f"{path} cannot be read"), suppress(FileNotFoundError):
            self._read()
        self._most = _LEAST + 2 * len(self._in_force())

    def items(self) -> Iterator[tuple[str, Hold]]:
        """Yield owners with what is in force, in the order of their first line."""
        yield from self._in_force().items()

    def get(self, owner: str) -> Hold:
        """Return what is written of an owner, which may be over."""
        return self._holds.get(owner, Hold())

    def set(self, owner: str, hold: Hold) -> None:
        """Write down that this holds for an owner, and nothing else. Raises InputError."""
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
        """Write down what is in force alone."""
        self._holds = self._in_force()
        with as_input_error(f"cannot write {self._path}"), replacing(self._path, fsync=self._fsync, mode=0o600) as file:
            file.writelines(_line(owner, hold) for owner, hold in self._holds.items())
            self._size = file.tell()
        self._lines = len(self._holds)
        self._most = _LEAST + 2 * self._lines


class LastingWaits:
    """Writes down at once whom an index of owners may not ask. The index has the times of a clock, what is written
    those of the wall."""

    def __init__(self, holds: OwnerHolds, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        """``clock``: the index's; ``wall``: seconds since 1970."""
        self._holds, self.clock, self._wall = holds, clock, wall

    def items(self) -> Iterator[tuple[str, Hold]]:
        """Yield owners with the holds in force. ``wait`` is in seconds from now, ``failed`` and ``slowed_at`` are in
        seconds ago."""
        now = self._wall()
        for name, hold in self._holds.items():
            wait, failed, slowed = min(hold.until - now, hold.wait), now - hold.failed, now - hold.slowed_at
            yield name, hold._replace(wait=wait, failed=max(failed, 0.0), slowed_at=max(slowed, 0.0))

    def parked(self) -> Iterator[tuple[str, float]]:
        """Yield the owners that are parked, with the delays for which they are."""
        return ((name, hold.delay) for name, hold in self._holds.items() if hold.parked)

    def hold(self, name: str, until: float, *, force: bool, failures: int | None) -> None:
        """See :meth:`crawl4llm.frontier.Owners.hold`. Raises InputError, as all that writes."""
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
    """Return what a line says. Raises ValueError if it is damaged."""
    checksum, _, content = line[:-1].partition(b" ")
    if int(checksum, 16) != zlib.crc32(content):
        raise ValueError("a damaged line")
    said = parse_json(content)
    if not isinstance(said, list) or not said or not isinstance(said[0], str):
        raise ValueError("a line without an owner")
    return said[0], hold_of(said[1:])

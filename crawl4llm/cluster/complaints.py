"""Answers to complaints in a crawl by several workers: orders to all of them, and the log of their requests.

``control/00000003`` is the third order of the operator, which replaces those before it; it says which domains are
``blocked`` as control.json does. Each worker looks for the next one every second. It sends nothing if it could not look
for a lease.

``requests/WORKER/00000007`` is the seventh part of a worker's log of requests, put with its commits. Before it is
there, its lines lie in ``OUTPUT_DIR/requests-waiting/CRAWL/WORKER-00000007.jsonl``, so that a killed worker loses no
line that it wrote: the next one with that OUTPUT_DIR puts them.
"""

from __future__ import annotations

import asyncio
import gzip
import heapq
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Final

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.files import AppendFile
from crawl4llm.base.input_files import read_input
from crawl4llm.base.within import require_within
from crawl4llm.cluster.liveness import boottime
from crawl4llm.cluster.storage import Storage, packed, unpacked
from crawl4llm.crawl import REQUESTS, Control, checked_control

logger = logging.getLogger(__name__)

FOLDER: Final = "control"
_LOOK: Final = 1.0
"""Seconds between two looks."""
_SHAPE: Final = {"time": {str}, "blocked": [{str}]}
WAITING: Final = "requests-waiting"
_MOST: Final = 1 << 18
"""Bytes of lines after which another part begins; whoever merges has a part of each worker in memory."""
_LARGEST: Final = 1 << 22
"""Bytes of a part that is read."""
_PART: Final = re.compile(r"([A-Za-z0-9.-]{1,200})-(\d{8})\.jsonl", re.ASCII)
_LINE: Final = re.compile(rb'\{"time": "((\d{4}-\d\d-\d\d)T[0-9:.]{8,15}Z)", .{0,65536}\}\n')


class Controls:
    """The orders in a storage. Methods raise InputError; each look is one request to the storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.number = max(storage.numbers(FOLDER), default=1) - 1
        """The number of the newest order that was read, of which there may be none; 0 before the first."""
        self.control = Control()

    def look(self) -> bool:
        """Read the orders since the last look; return whether there were any."""
        before = self.number
        while (said := self._storage.read_if_there(name := f"{FOLDER}/{self.number + 1:08}", _SHAPE)) is not None:
            self.control = checked_control(f"STORAGE {self._storage.url}: {name}", {"blocked": said["blocked"]})
            self.number += 1
        return self.number != before

    def set_blocked(self, domain: str, *, blocked: bool) -> bool:
        """Block a domain, or block it no longer; return whether that is new. Several may do so at once."""
        while True:
            self.look()
            names = {*self.control.blocked, domain} if blocked else {*self.control.blocked} - {domain}
            if names == set(self.control.blocked):
                return False
            said = {"time": datetime.now(timezone.utc).isoformat(timespec="seconds"), "blocked": sorted(names)}
            if self._storage.put_packed(f"{FOLDER}/{self.number + 1:08}", said):
                self.look()
                return True


class Heeding(Controls):
    """Lets a worker heed the orders, by a task of its own, as its other work may take long."""

    def __init__(self, storage: Storage, lease: float, heed: Callable[[Sequence[str]], None]) -> None:
        """``heed`` is called with the domains that are blocked, whenever they are others."""
        super().__init__(storage)
        self._lease, self._heed = lease, heed
        self._heard_at = float("-inf")
        self._failed = False
        """True if the last look failed."""

    @property
    def hears(self) -> bool:
        """True if the last look began less than a lease ago, so that each order older than a lease is heeded.

        The clock goes on while this process stands still.
        """
        return boottime() < self._heard_at + self._lease

    async def hear(self) -> None:
        """Look once, and heed new orders. Raises InputError."""
        began = boottime()
        if await asyncio.to_thread(self.look):
            logger.info("control %d: %d domains are blocked", self.number, len(self.control.blocked))
            self._heed(self.control.blocked)
        self._heard_at = began

    async def run(self, drop: Callable[[float], None]) -> None:
        """Look again and again. ``drop`` is called with a time until which it may drop documents of blocked domains."""
        while True:
            await asyncio.sleep(min(_LOOK, self._lease / 4))
            try:
                await self.hear()
                self._failed = False
            except InputError as error:  # whoever puts a commit next ends with it; meanwhile nothing is sent for long
                if not self._failed:
                    logger.warning("%s; no request is sent until it answers", error)
                self._failed = True
            drop(time.monotonic() + 0.1)


class RequestSpool:
    """The lines of this worker. :meth:`append` and :meth:`close` are called by the event loop's thread alone."""

    def __init__(self, storage: Storage, folder: Path, crawl: str, worker: str) -> None:
        """``folder``: the worker's output folder. Nothing is written before there is a line."""
        self._storage = storage
        self._folder = folder / WAITING / crawl
        self._worker = re.sub(r"[^A-Za-z0-9.-]", "-", worker)[:200]
        self._number = 0
        self._file: AppendFile | None = None
        self._putting = Lock()

    def append(self, line: bytes, _at: float) -> None:
        """Append a line, which has its end. Raises InputError, with nothing written."""
        self._file = self._file or self._begin()
        self._file.append(line)
        if self._file.size >= _MOST:
            self.close()

    def close(self) -> None:
        """End the part that is being written: it is put next."""
        if self._file is not None:
            self._file.close()
            self._file = None

    async def put(self) -> None:
        """Put all lines into the storage, those that an earlier worker with this folder has left too. Raises
        InputError."""
        self.close()
        await asyncio.to_thread(self._put_parts, self._number)

    def finish(self) -> None:
        """Do the same at the end, perhaps after an error. If lines cannot be put, log the folder that keeps them."""
        self.close()
        try:
            self._put_parts(self._number)
        except InputError as error:
            logger.error("%s; the last lines of the request log are in %s", error, self._folder)  # noqa: TRY400
            return
        with suppress(OSError):
            self._folder.rmdir()
            self._folder.parent.rmdir()

    def _begin(self) -> AppendFile:
        self._number += 1
        path = self._folder / f"{self._worker}-{self._number:08}.jsonl"
        with as_input_error(f"{self._folder} cannot be made"):
            self._folder.parent.mkdir(mode=0o700, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
        require_within(self._folder, path)
        return AppendFile(path, None, private=True)

    def _put_parts(self, last: int) -> None:
        """Put the parts that lie in the folder, of its own those up to a number: later ones are being written."""
        with self._putting:  # who waited finds nothing left
            found: list[tuple[Path, re.Match[str]]] = []
            with as_input_error(f"{self._folder} cannot be read"), suppress(FileNotFoundError):
                found = [(path, part) for path in self._folder.iterdir() if (part := _PART.fullmatch(path.name))]
            for path, part in sorted(found, key=lambda one: one[0].name):
                if part[1] != self._worker or int(part[2]) <= last:
                    self._put_part(path, f"{REQUESTS}/{part[1]}/{part[2]}")

    def _put_part(self, path: Path, name: str) -> None:
        with as_input_error(f"{path} cannot be read or removed"):
            data = read_input(path, _LARGEST)
            if lines := data[: data.rfind(b"\n") + 1]:  # a power cut may have cut the last one
                self._storage.put(name, packed(lines))
            path.unlink()


def lines_of(storage: Storage) -> Iterator[tuple[str, bytes]]:
    """Yield the day and the bytes of each line of all workers, in about the order of their times. Raises
    StorageError."""
    parts = groupby(storage.names(REQUESTS), lambda name: name.rpartition("/")[0])
    for _, day, line in heapq.merge(*[_lines(storage, list(names)) for _, names in parts]):
        yield day.decode(), line


def _lines(storage: Storage, names: list[str]) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield time, day and bytes of each line of a worker. Times ascend, except among requests that were
    under way together."""
    for number, name in enumerate(names, 1):
        if name.rpartition("/")[2] != f"{number:08}":
            raise storage.damaged(f"{name.rpartition('/')[0]}/{number:08}", "it is missing")
        with storage.reading(name):
            content = unpacked(storage.get(name) or b"")
        for line in content.splitlines(keepends=True):
            if (found := _LINE.fullmatch(line)) is None:
                raise storage.damaged(name, "it has a line that is no request")
            yield found[1], found[2], line


def write_log(storage: Storage, folder: Path) -> None:
    """Write the request log of a crawl into a run folder, as a JOBDIR has it: a file for each day, if there are lines.
    Raises InputError."""
    for day, lines in groupby(lines_of(storage), itemgetter(0)):  # a day may come again: a file of several members
        (folder / REQUESTS).mkdir(mode=0o700, exist_ok=True)
        path = folder / REQUESTS / f"{day}.jsonl.gz"
        path.touch(mode=0o600)
        with path.open("ab") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as member:
            member.writelines(line for _, line in lines)

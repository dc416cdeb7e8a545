"""Liveness: which worker has which partition, and hints between workers; of one worker, or of several on a server.

It keeps no state of the crawl, and safety does not depend on it. The storage decides which work counts, so two workers
at one partition cost time but no page. A Valkey server, or Redis from 6.2 on, keeps a line for each partition and each
worker. It may lose them at any time: with its next heartbeat, one script call, a worker says again which partitions it
holds. Announcements use publish and subscribe, not a stream: they are hints, which a full server accepts too.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from math import isfinite
from threading import Event, RLock, Thread
from typing import Any, Final, NamedTuple, TypeVar

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import json_or_none
from crawl4llm.base.installed import to_install
from crawl4llm.base.shapes import NUMBER, fits
from crawl4llm.cluster_options import without_secrets

logger = logging.getLogger(__name__)

T = TypeVar("T")
DRAIN, STOP = "drain", "stop"
"""The requests to a worker that it hands its partitions over and ends, and to all workers that they end."""
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_ALL: Final = "*"
_REQUEST: Final = re.compile(rf"({DRAIN}|{STOP}) (\d{{1,15}})", re.ASCII)


class WorkerFacts(NamedTuple):
    """The known facts of a worker. ``silent``: seconds since its last heartbeat, which had the ``figures``."""

    id: str
    silent: float
    partitions: tuple[int, ...]
    figures: Mapping[str, float]


class Liveness:
    """Leases of partitions, announcements and requests; here of a single worker, without a server. It may have all
    partitions, never loses one, and nobody asks it for anything. May be used from any thread."""

    def __init__(self, partitions: int) -> None:
        self.worker = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        """The unique id of this worker, e.g. ``node7-4711-3f2a9c``; it names the machine."""
        self._partitions = partitions
        self._free, self._mine = set(range(partitions)), set[int]()
        self.figures: Mapping[str, float] = {}
        """Facts of this worker, which the next heartbeat carries."""
        self.requested: str | None = None
        """DRAIN or STOP if this worker was asked to; as of the last heartbeat."""
        self._heard = Event()
        """Set if something was announced and not yet waited for."""

    def join(self) -> None:
        """Join as a worker, with heartbeats from now on."""

    def claim(self, *, is_new: bool = True) -> list[int]:
        """Claim free partitions, up to this worker's fair share (P / live workers), and return them. ``is_new``: the
        storage shows no work yet, so a server that does not know the crawl has forgotten no other worker."""
        free, self._free = self._free, set()
        self._mine |= free
        return sorted(free)

    def held(self) -> frozenset[int]:
        """Return the partitions that may be worked on now, less than half a lease after the last heartbeat."""
        return frozenset(self._mine)

    def renew(self) -> frozenset[int]:
        """Return the partitions that were lost since the last call: others have taken them, or may have."""
        return frozenset()

    def give_up(self, partitions: Collection[int]) -> None:
        """Release partitions, which others may then take at once."""
        self._free |= self._mine.intersection(partitions)
        self._mine -= self._free

    def surplus(self) -> int:
        """Return how many partitions to give up, because workers have joined; below 0: how many it may yet have."""
        return 0

    def announce(self) -> None:
        """Tell all workers that there are new objects in the storage: a hint that may be lost."""
        self._heard.set()

    async def wait(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds for new objects; return whether any were announced since the last call."""
        is_new = await asyncio.to_thread(self._heard.wait, timeout)
        self._heard.clear()
        return is_new

    async def leave(self) -> None:
        """Release all partitions, and be no longer counted."""
        self._mine.clear()
        self._heard.set()  # ends what waits


def boottime() -> float:
    """Return seconds of a clock that nobody sets, and that goes on while the machine sleeps, if there is one."""
    return time.clock_gettime(_CLOCK)


_TOOLS: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local partitions, workers, facts, asked = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local me, lease = ARGV[1], tonumber(ARGV[2])
local function read(partition)
  local owner, deadline = string.match(redis.call('HGET', partitions, partition) or '', '(%S+) (%d+)')
  return owner, tonumber(deadline)
end
local function write(partition, owner, deadline)
  redis.call('HSET', partitions, partition, owner .. ' ' .. deadline)
end
"""
"""A partition's line is ``WORKER DEADLINE`` by the server's clock, in milliseconds; ``- 0`` if released."""

_BEAT: Final = f"""{_TOOLS}
redis.call('HSETNX', partitions, 'since', now)
redis.call('ZADD', workers, now, me)
redis.call('HSET', facts, me, ARGV[3])
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', workers, '-inf', now - 10 * lease)) do
  redis.call('ZREM', workers, gone)
  redis.call('HDEL', facts, gone)
  redis.call('HDEL', asked, gone)
end
local lost = {{}}
for at = 4, #ARGV, 2 do
  local partition = ARGV[at]
  local owner = read(partition)
  if owner == me or (not owner and ARGV[at + 1] == '1') then
    write(partition, me, now + lease)
  else
    lost[#lost + 1] = partition
  end
end
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, 86400) end
return {{now, redis.call('ZCOUNT', workers, now - lease, '+inf'), redis.call('HMGET', asked, me, '{_ALL}'), lost}}
"""
"""ARGV: figures; then each partition that it holds, and whether the lease still lasts by this worker's clock. If it
lasts, a line that the server lost is restored."""

_CLAIM: Final = f"""{_TOOLS}
local all, is_new = tonumber(ARGV[3]), ARGV[4] == '1'
local held, taken = {{}}, {{}}
for at = 5, #ARGV do held[ARGV[at]] = true end
redis.call('HSETNX', partitions, 'since', now)
local waited = is_new or now >= tonumber(redis.call('HGET', partitions, 'since')) + lease
local live = math.max(1, redis.call('ZCOUNT', workers, now - lease, '+inf'))
local most = math.ceil(all / live) - (#ARGV - 4)
for number = 0, all - 1 do
  if #taken >= most then break end
  local partition = tostring(number)
  local owner, deadline = read(partition)
  local free = owner == '-' or owner == me or (owner and now >= deadline + lease) or (not owner and waited)
  if free and not held[partition] then
    write(partition, me, now + lease)
    taken[#taken + 1] = number
  end
end
return taken
"""
"""ARGV: number of partitions, whether the storage shows no work yet; then the partitions held."""

_RELEASE: Final = f"""{_TOOLS}
for at = 3, #ARGV do
  if read(ARGV[at]) == me then write(ARGV[at], '-', 0) end
end
"""
"""ARGV: the partitions to release."""


class ValkeyLiveness(Liveness):
    """Those of several workers, on a server. If it cannot be used at first, InputError is raised. If it cannot be
    reached later, that is said once, and it is asked again with back-off. Meanwhile calls return as if nothing had been
    heard. A call takes 5 seconds at most, and no time while the server is known to be away."""

    def __init__(self, url: str, crawl: str, partitions: int, lease: float) -> None:
        """``crawl``: an id of the storage, under which all keys stand."""
        try:
            from valkey import Valkey, exceptions  # an extra
        except ImportError:
            raise InputError(f"CLUSTER needs a package that is not installed: {to_install('cluster')}") from None
        super().__init__(partitions)
        self._lease, self._faults = lease, (exceptions.ValkeyError, OSError)
        self._shown = without_secrets(url)
        slowest = min(max(lease / 6, 1.0), 5.0)
        try:
            self._server: Any = Valkey.from_url(
                url, socket_timeout=slowest, decode_responses=True, encoding_errors="replace", client_name=self.worker
            )
            self._server.ping()
            about: Any = self._server.info("server")
            self._keys = [f"crawl4llm:{{{crawl}}}:{name}" for name in ("partitions", "workers", "facts", "asked")]
            self._server.set(f"crawl4llm:{{{crawl}}}:probe", 1, px=1)
        except (TypeError, ValueError):  # of arguments in the query, which the library takes
            raise InputError(f"CLUSTER {self._shown} has unknown connection arguments") from None
        except self._faults as error:
            raise InputError(f"CLUSTER {self._shown} {_problem(error)}") from None
        version = str(about.get("redis_version", "0"))
        if tuple(map(int, version.split(".")[:2])) < (6, 2):
            raise InputError(f"CLUSTER {self._shown} is version {version}; use Valkey, or Redis from 6.2 on")
        self._said = f"crawl4llm:{{{crawl}}}:said"
        self._scripts = {text: self._server.register_script(text) for text in (_BEAT, _CLAIM, _RELEASE)}
        self._lock = RLock()
        self._held: dict[int, float] = {}
        """By partition, the time by boottime() before it was last taken or renewed."""
        self._lost: set[int] = set()
        self._live, self._joined = 1, 0
        self._next_beat = self._retry_at = self._pause = 0.0
        self._ended = Event()

    def join(self) -> None:
        listener = self._server.pubsub(ignore_subscribe_messages=True)
        self._try(lambda: listener.subscribe(self._said))
        self._beat()
        Thread(target=self._run, args=(listener,), name="liveness", daemon=True).start()

    def claim(self, *, is_new: bool = True) -> list[int]:
        with self._lock:
            if self.surplus() >= 0:
                return []
            since = boottime()
            taken = self._try(lambda: self._call(_CLAIM, self._partitions, int(is_new), *self._held)) or []
            self._held |= dict.fromkeys(taken, since)
            self._lost.difference_update(taken)
            return taken

    def held(self) -> frozenset[int]:
        with self._lock:
            oldest = boottime() - self._lease / 2
            return frozenset(partition for partition, since in self._held.items() if since > oldest)

    def renew(self) -> frozenset[int]:
        with self._lock:
            lost, self._lost = frozenset(self._lost), set()
            return lost

    def give_up(self, partitions: Collection[int]) -> None:
        with self._lock:
            held = [partition for partition in partitions if self._held.pop(partition, None) is not None]
            self._try(lambda: self._call(_RELEASE, *held))

    def surplus(self) -> int:
        with self._lock:
            return len(self._held) + self._partitions // -self._live

    def announce(self) -> None:
        self._try(lambda: self._server.publish(self._said, "new"))

    def workers(self) -> list[WorkerFacts]:
        """Return the workers that are known, by id."""
        partitions, workers, facts, _ = self._keys
        asked = self._server.pipeline(transaction=False)
        asked.time().zrange(workers, 0, -1, withscores=True).hgetall(facts).hgetall(partitions)
        answer = self._try(asked.execute)
        if answer is None:
            return []
        (seconds, micros), beats, said, lines = answer
        owned: dict[str, list[int]] = {}
        for partition, line in lines.items():
            if partition.isdecimal() and int(partition) < self._partitions:
                owned.setdefault(line.split(" ")[0], []).append(int(partition))
        now = seconds + micros / 1e6
        return [
            WorkerFacts(name, max(0.0, now - beat / 1e3), tuple(sorted(owned.get(name, ()))), _told(said[name]))
            for name, beat in sorted(beats)
            if name in said and name.isprintable() and isfinite(beat)
        ]

    def request(self, action: str, worker: str | None = None) -> None:
        """Ask a worker to DRAIN, or (None) all that have joined so far to STOP. Raises InputError."""
        try:
            seconds, micros = self._server.time()
            self._server.hset(self._keys[3], worker or _ALL, f"{action} {seconds * 1000 + micros // 1000}")
            self._server.expire(self._keys[3], 86400)
        except self._faults as error:
            raise InputError(f"CLUSTER {self._shown} {_problem(error)}") from None

    async def leave(self) -> None:
        self._ended.set()
        with self._lock:
            self.give_up(list(self._held))
            workers, facts, asked = self._keys[1:]
            leaving = self._server.pipeline().zrem(workers, self.worker)
            self._try(leaving.hdel(facts, self.worker).hdel(asked, self.worker).execute)
        self.announce()  # wakes the thread
        self._heard.set()  # ends what waits
        self._server.connection_pool.disconnect(inuse_connections=False)

    def _run(self, listener: Any) -> None:
        """Send heartbeats, and hear announcements in between: the thread."""
        while not self._ended.is_set():
            if (due := max(self._next_beat, self._retry_at) - boottime()) <= 0:
                self._beat()
                continue
            try:
                if not listener.subscribed:
                    listener.subscribe(self._said)
                heard = listener.get_message(timeout=due)
            except self._faults:  # said by the heartbeat
                self._ended.wait(min(due, self._lease / 10))
                continue
            if heard:
                super().announce()
        listener.close()

    def _beat(self) -> None:
        with self._lock:
            if self._ended.is_set():
                return
            since = boottime()
            lasts = [value for item in self._held.items() for value in (item[0], int(since < item[1] + self._lease))]
            answer = self._try(lambda: self._call(_BEAT, json.dumps(self.figures), *lasts))
            if answer is None:
                return
            now, self._live, asked, lost = answer
            self._joined = self._joined or now
            requests = [found for line in asked if (found := _REQUEST.fullmatch(line or ""))]
            self.requested = next((found[1] for found in requests if int(found[2]) >= self._joined), None)
            for partition in map(int, lost):
                del self._held[partition]
                self._lost.add(partition)
            self._held = dict.fromkeys(self._held, since)
            self._next_beat = since + self._lease / 3

    def _call(self, script: str, *arguments: Any) -> Any:
        return self._scripts[script](self._keys, [self.worker, int(self._lease * 1000), *arguments])

    def _try(self, ask: Callable[[], T]) -> T | None:
        """Ask the server; None if it does not answer, or was not asked because it did not shortly before."""
        with self._lock:
            if boottime() < self._retry_at:
                return None
            try:
                answer = ask()
            except self._faults as error:
                if not self._pause:
                    logger.warning("CLUSTER %s %s; asking again", self._shown, _problem(error))
                self._pause = min(2 * self._pause or self._lease / 60, self._lease / 3)
                self._retry_at = boottime() + self._pause
                return None
            if self._pause:
                logger.warning("CLUSTER %s answers again", self._shown)
                self._pause = 0.0
            return answer


def _told(said: str) -> dict[str, float]:
    """Return a worker's figures by its last words; none of odd ones."""
    content = json_or_none(said)
    return content if fits([content], {...: NUMBER}) else {}


def _problem(error: Exception) -> str:
    """Return the meaning of an error and the remedy, to follow the server's name."""
    from valkey import exceptions  # an extra

    said = " ".join(str(error).split())
    if isinstance(error, exceptions.OutOfMemoryError):
        return "is full: raise its maxmemory, or use another server"
    if isinstance(error, exceptions.NoPermissionError):
        return f"denies its user a required command: {said}"
    rejected = exceptions.AuthenticationError | exceptions.AuthorizationError
    if isinstance(error, rejected) or said.startswith(("NOAUTH", "WRONGPASS")):
        return "wants another user or password: CLUSTER=valkey://USER:PASSWORD@HOST:PORT/0"
    if isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError | OSError):
        return f"cannot be reached: {said}"
    return f"refuses: {said}"

"""Liveness on a Valkey server, or Redis from 6.2 on.

The server keeps a line for each partition and each worker, whatever the size of the frontier. It may lose them at any
time: with its next heartbeat a worker says again which partitions it holds. A heartbeat is one script call for all
partitions of a worker. Announcements use publish and subscribe, not a stream: they are hints, which need not be kept,
trimmed, or restored after a wipe, and a full server accepts them.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Collection, Mapping
from math import isfinite
from threading import Event, RLock, Thread
from typing import Any, Final, NamedTuple, TypeVar

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import json_or_none
from crawl4llm.base.installed import to_install
from crawl4llm.base.shapes import NUMBER, fits
from crawl4llm.cluster.liveness import DRAIN, STOP, Liveness, WorkerFacts, boottime
from crawl4llm.cluster_options import without_secrets

try:
    from valkey import Valkey, exceptions
except ImportError as error:
    raise InputError(f"CLUSTER needs a package that is not installed: {to_install('cluster')}") from error

logger = logging.getLogger(__name__)

T = TypeVar("T")
_OLDEST: Final = (6, 2)
_ALL: Final = "*"
_REQUEST: Final = re.compile(rf"({DRAIN}|{STOP}) (\d{{1,15}})", re.ASCII)
_SLOWEST: Final = (1.0, 5.0)
"""Seconds that the server may take to answer: a sixth of the lease, within these."""

_TOOLS: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local partitions, workers, facts, asked = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local me, lease = ARGV[1], tonumber(ARGV[2])
local lines, written = {}, {}
local flat = redis.call('HGETALL', partitions)
for at = 1, #flat, 2 do lines[flat[at]] = flat[at + 1] end
local function read(partition)
  local owner, epoch, deadline = string.match(lines[partition] or '', '(%S+) (%d+) (%d+)')
  return owner, tonumber(epoch), tonumber(deadline)
end
local function write(partition, owner, epoch, deadline)
  written[#written + 1] = partition
  written[#written + 1] = owner .. ' ' .. epoch .. ' ' .. deadline
end
local function store()
  for at = 1, #written, 1000 do redis.call('HSET', partitions, unpack(written, at, math.min(at + 999, #written))) end
end
"""
"""A partition's line is ``WORKER EPOCH DEADLINE`` by the server's clock, in milliseconds; ``- EPOCH 0`` if released."""

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
for at = 4, #ARGV, 3 do
  local partition, mine = ARGV[at], tonumber(ARGV[at + 1])
  local owner, epoch = read(partition)
  local forgotten = ARGV[at + 2] == '1' and (not owner or epoch < mine)
  if owner == me and epoch == mine or forgotten then
    write(partition, me, mine, now + lease)
  else
    lost[#lost + 1] = partition
  end
end
store()
for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, 86400) end
return {{now, redis.call('ZCOUNT', workers, now - lease, '+inf'), redis.call('HMGET', asked, me, '{_ALL}'), lost}}
"""
"""ARGV: figures; then, for each partition that it holds, the partition, its epoch, and whether the lease still lasts by
this worker's clock. If it lasts, a line that the server lost is restored, even over the line of the partition's
previous worker."""

_CLAIM: Final = f"""{_TOOLS}
local all, floor = tonumber(ARGV[3]), tonumber(ARGV[4])
local held, taken = {{}}, {{}}
for at = 5, #ARGV do held[ARGV[at]] = true end
redis.call('HSETNX', partitions, 'since', now)
local waited = floor == 0 or now >= tonumber(lines['since'] or now) + lease
local live = math.max(1, redis.call('ZCOUNT', workers, now - lease, '+inf'))
local most = math.ceil(all / live) - (#ARGV - 4)
for number = 0, all - 1 do
  if #taken >= 2 * most then break end
  local partition = tostring(number)
  local owner, epoch, deadline = read(partition)
  local free = owner == '-' or owner == me or (owner and now >= deadline + lease) or (not owner and waited)
  if free and not held[partition] then
    epoch = math.max((epoch or 0) + 1, floor + 1, now)
    write(partition, me, epoch, now + lease)
    taken[#taken + 1] = number
    taken[#taken + 1] = epoch
  end
end
store()
return taken
"""
"""ARGV: number of partitions, floor; then the partitions held. Epochs begin at the server's time, so
that they ascend after it has forgotten all."""

_RELEASE: Final = f"""{_TOOLS}
for at = 3, #ARGV, 2 do
  local owner, epoch = read(ARGV[at])
  if owner == me and epoch == tonumber(ARGV[at + 1]) then write(ARGV[at], '-', epoch, 0) end
end
store()
"""
"""ARGV: partition and epoch of each to release."""


class _Lease(NamedTuple):
    epoch: int
    since: float
    """Before it was last taken or renewed: boottime."""


class ValkeyLiveness(Liveness):
    """See :class:`crawl4llm.cluster.liveness.Liveness`. A call takes 5 seconds at most, and no time while the
    server is known to be away.

    ``crawl``: an id of the storage, under which all keys stand. Raises InputError if the server cannot be used.
    """

    def __init__(self, url: str, crawl: str, partitions: int, lease: float) -> None:
        super().__init__(partitions)
        self._lease = lease
        self._shown = without_secrets(url)
        slowest = min(max(lease / 6, _SLOWEST[0]), _SLOWEST[1])
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
        except (exceptions.ValkeyError, OSError) as error:
            raise InputError(f"CLUSTER {self._shown} {_problem(error)}") from None
        version = str(about.get("redis_version", "0"))
        if tuple(map(int, version.split(".")[:2])) < _OLDEST:
            raise InputError(f"CLUSTER {self._shown} is version {version}; use Valkey, or Redis from 6.2 on")
        self._said = f"crawl4llm:{{{crawl}}}:said"
        self._scripts = {text: self._server.register_script(text) for text in (_BEAT, _CLAIM, _RELEASE)}
        self._lock = RLock()
        self._held: dict[int, _Lease] = {}
        self._lost: set[int] = set()
        self._live, self._joined = 1, 0
        self._next_beat = self._retry_at = self._pause = 0.0
        self._ended = Event()

    def join(self) -> None:
        listener = self._server.pubsub(ignore_subscribe_messages=True)
        self._try(lambda: listener.subscribe(self._said))
        self._beat()
        Thread(target=self._run, args=(listener,), name="liveness", daemon=True).start()

    def claim(self, *, floor: int = 0) -> dict[int, int]:
        with self._lock:
            if self._excess >= 0:
                return {}
            since = boottime()
            answer = self._try(lambda: self._call(_CLAIM, self._partitions, floor, *self._held)) or []
            taken = dict(zip(answer[::2], answer[1::2], strict=True))
            self._held |= {partition: _Lease(epoch, since) for partition, epoch in taken.items()}
            self._lost -= taken.keys()
            return taken

    def held(self) -> frozenset[int]:
        with self._lock:
            oldest = boottime() - self._lease / 2
            return frozenset(partition for partition, lease in self._held.items() if lease.since > oldest)

    def renew(self) -> frozenset[int]:
        with self._lock:
            lost, self._lost = frozenset(self._lost), set()
            return lost

    def give_up(self, partitions: Collection[int]) -> None:
        with self._lock:
            self._release({partition: self._held.pop(partition) for partition in partitions if partition in self._held})

    def surplus(self) -> int:
        with self._lock:
            return max(0, self._excess)

    @property
    def _excess(self) -> int:
        """Partitions above the fair share, as of the last heartbeat; below 0: under it."""
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
        """Ask a worker to DRAIN, or (None) all that have joined so far to STOP. Raises InputError if that cannot be
        told."""
        try:
            seconds, micros = self._server.time()
            self._server.hset(self._keys[3], worker or _ALL, f"{action} {seconds * 1000 + micros // 1000}")
            self._server.expire(self._keys[3], 86400)
        except (exceptions.ValkeyError, OSError) as error:
            raise InputError(f"CLUSTER {self._shown} {_problem(error)}") from None

    async def leave(self) -> None:
        self._ended.set()
        with self._lock:
            held, self._held = self._held, {}
            self._release(held)
            workers, facts, asked = self._keys[1:]
            leaving = self._server.pipeline().zrem(workers, self.worker)
            self._try(leaving.hdel(facts, self.worker).hdel(asked, self.worker).execute)
        self.announce()  # wakes the thread
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
            except (exceptions.ValkeyError, OSError):  # said by the heartbeat
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
            lines = [
                value
                for partition, lease in self._held.items()
                for value in (partition, lease.epoch, int(since < lease.since + self._lease))
            ]
            answer = self._try(lambda: self._call(_BEAT, json.dumps(self._figures), *lines))
            if answer is None:
                return
            now, self._live, asked, lost = answer
            self._joined = self._joined or now
            requests = [found for line in asked if (found := _REQUEST.fullmatch(line or ""))]
            self._requested = next((found[1] for found in requests if int(found[2]) >= self._joined), None)
            for partition in map(int, lost):
                del self._held[partition]
                self._lost.add(partition)
            self._held = {partition: _Lease(lease.epoch, since) for partition, lease in self._held.items()}
            self._next_beat = since + self._lease / 3

    def _release(self, leases: Mapping[int, _Lease]) -> None:
        pairs = [value for partition, lease in leases.items() for value in (partition, lease.epoch)]
        self._try(lambda: self._call(_RELEASE, *pairs))

    def _call(self, script: str, *arguments: Any) -> Any:
        return self._scripts[script](self._keys, [self.worker, int(self._lease * 1000), *arguments])

    def _try(self, ask: Callable[[], T]) -> T | None:
        """Ask the server; None if it does not answer, or was not asked because it did not shortly before."""
        with self._lock:
            if boottime() < self._retry_at:
                return None
            try:
                answer = ask()
            except (exceptions.ValkeyError, OSError) as error:
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
    """Return the meaning of an error and the remedy, as the end of a line after the server's name."""
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

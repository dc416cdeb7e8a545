"""An HTTP/1.1 server of many hosts, in asyncio, that logs when each request came and when its answer was out."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import IO, NamedTuple

LONGEST_HEAD = 1 << 18
LAST_PART = 16_384
"""Bytes of a body that are written after the end was noted: the system's buffer takes so many at once."""
_ATTEMPTS = 5
Headers = Mapping[str, str]


class Logged(NamedTuple):
    """A line of the access log; times are of time.monotonic(), which all processes of a machine share."""

    arrived: float
    """When the head of the request was there."""
    ended: float
    """Just before the last byte of the answer was given to the system, so that nobody can have had it before; where
    ``whole`` is False, when the connection was found closed, or was closed."""
    host: str
    path: str
    status: int
    """0: there was no answer."""
    whole: bool
    """Whether all of the answer was sent."""
    address: str
    """The server's."""
    agent: str
    """The User-Agent."""


def read_log(path: Path) -> list[Logged]:
    """Return the requests of an access log in the order in which they ended."""
    return [Logged(**json.loads(line)) for line in path.read_text().splitlines()]


class Asked(NamedTuple):
    """A request."""

    method: str
    host: str
    path: str
    """With the query."""
    headers: Headers
    """By name in lower case."""


class Gone(Exception):
    """The server closes the connection before the answer is whole."""


class Answer:
    """The answer to one request: what is sent of it, and when it ended."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, bodiless: bool) -> None:
        self._reader, self._writer, self._bodiless = reader, writer, bodiless
        self.status = 0
        self.ended: float | None = None
        self.closes = False
        """Whether the connection ends with it."""

    async def send(self, status: int, body: bytes = b"", headers: Headers | None = None) -> None:
        """Send a whole answer."""
        head = self._head(status, {"Content-Length": str(len(body)), **(headers or {})})
        data = head + (b"" if self._bodiless else body)
        self._writer.write(data[:-LAST_PART])
        await self.end(data[-LAST_PART:])

    async def begin(self, status: int, headers: Headers) -> None:
        """Send a head; a body follows in :meth:`write`, up to :meth:`end`."""
        self._writer.write(self._head(status, headers))
        await self._writer.drain()

    async def write(self, data: bytes) -> None:
        """Send a part of the body; returns when the system has taken it."""
        self._writer.write(data)
        await self._writer.drain()

    async def end(self, data: bytes = b"") -> None:
        """Send the last part."""
        await self._writer.drain()
        self.ended = time.monotonic()
        self._writer.write(data)
        await self._writer.drain()

    async def silence(self, seconds: float) -> None:
        """Say nothing until the client has gone, or for as long as is given."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._reader.read(1), seconds)

    def _head(self, status: int, headers: Headers) -> bytes:
        self.status = status
        phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Odd"
        named = {"Content-Type": "text/html; charset=utf-8", **headers}
        lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in named.items())]
        if self.closes:
            lines.append("Connection: close")
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


Answering = Callable[[Asked, Answer], Awaitable[None]]


class Server:
    """Serves one port on several addresses of this machine."""

    def __init__(self, answer: Answering, log: IO[str]) -> None:
        self._answer, self._log = answer, log
        self._listening: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, addresses: Sequence[str], port: int) -> int:
        """Listen at a port, 0: at one that is free; returns the port. Raises OSError where it is taken."""
        for attempt in range(_ATTEMPTS):
            try:
                return await self._listen(addresses, port)
            except OSError:
                await self.stop()
                if port or attempt + 1 == _ATTEMPTS:
                    raise
        raise AssertionError

    async def _listen(self, addresses: Sequence[str], port: int) -> int:
        """Listen at the port that is free at the first address; others may have it in use at the next one."""
        for address in addresses:
            server = await asyncio.start_server(self._serve, address, port, limit=LONGEST_HEAD, backlog=512)
            self._listening.append(server)
            port = server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        """Listen no longer, and break off what is under way; it is logged as such."""
        while self._listening:
            self._listening.pop().close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection, one after the other."""
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        writer.transport.set_write_buffer_limits(0)  # so that drain() waits until the system has taken all
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.CancelledError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, Gone):
            pass  # stop() cancels
        finally:
            self._connections.discard(task)
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; returns whether another may follow."""
        head = await reader.readuntil(b"\r\n\r\n")
        arrived = time.monotonic()
        asked = _asked(head)
        answer = Answer(reader, writer, bodiless=asked.method == "HEAD")
        answer.closes = asked.headers.get("connection", "").lower() == "close"
        try:
            await self._answer(asked, answer)
        finally:
            ended = time.monotonic() if answer.ended is None else answer.ended
            address = str(writer.get_extra_info("sockname")[0])
            whole = answer.ended is not None
            agent = asked.headers.get("user-agent", "")
            logged = Logged(arrived, ended, asked.host, asked.path, answer.status, whole, address, agent)
            self._log.write(json.dumps(logged._asdict()) + "\n")
            self._log.flush()
        return not answer.closes


def _asked(head: bytes) -> Asked:
    """Read the head of a request; what is none becomes one for nothing."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = [*first.split(" "), "", "", ""][:3]
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    host = headers.get("host", "").lower()
    return Asked(method, host.rpartition(":")[0] or host, path, headers)

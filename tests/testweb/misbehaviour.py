"""What servers do wrong: one function for each kind, some with an argument: ``status:503``, ``drip:30``."""

from __future__ import annotations

import asyncio
import gzip
import random
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Final

from tests.testweb.server import Answer, Asked, Gone

REFUSING, NOWHERE = "refusing", "nowhere"
"""Kinds of hosts, not of answers: connections to it are refused; it does not resolve."""
SHOWN: Final = "/misbehave/"
"""``/misbehave/KIND[:ARGUMENT]/...`` of any host misbehaves so."""
_LONG: Final = 3600.0
_PAGE: Final = b"<html><title>A page</title><body><p>Here is a page after all, with a sentence or two to read.</p>"
_MEBIBYTE: Final = 1 << 20
BOMB: Final = 200
"""Mebibytes that a bomb has when it is unpacked, by default."""
_DRIPS: Final = 20


async def status(asked: Asked, answer: Answer, argument: str) -> None:
    """Answer with a status: ``status:503``."""
    await answer.send(int(argument), b"<p>out of order")


async def retry_after(asked: Asked, answer: Answer, argument: str) -> None:
    """Answer 429 (or ``retry-after:5:503``) with Retry-After: ``retry-after:5`` seconds, or a date."""
    seconds, _, code = argument.partition(":")
    await answer.send(int(code or 429), b"<p>not so fast", {"Retry-After": seconds})


async def slow(asked: Asked, answer: Answer, argument: str) -> None:
    """Answer after so many seconds: ``slow:2``."""
    await asyncio.sleep(float(argument))
    await answer.send(200, _PAGE)


async def hang(asked: Asked, answer: Answer, argument: str) -> None:
    """Never answer."""
    answer.closes = True
    await answer.silence(_LONG)
    raise Gone


async def drip(asked: Asked, answer: Answer, argument: str) -> None:
    """Send a page in twenty parts over so many seconds: ``drip:30``."""
    body = _PAGE.ljust(_DRIPS * 10)
    await answer.begin(200, {"Content-Length": str(len(body))})
    size = len(body) // _DRIPS
    for start in range(0, len(body), size):
        await asyncio.sleep(float(argument) / _DRIPS)
        part = body[start : start + size]
        await (answer.write(part) if start + size < len(body) else answer.end(part))


async def endless(asked: Asked, answer: Answer, argument: str) -> None:
    """Send a body without an end, as fast as it is read."""
    answer.closes = True
    await answer.begin(200, {})
    part = b"<p>and on and on it goes</p>\n" * 500
    while True:
        await answer.write(part)


async def bomb(asked: Asked, answer: Answer, argument: str) -> None:
    """Send a gzip body that unpacks to a multiple of a thousand: ``bomb``, or ``bomb:MEBIBYTES``."""
    await answer.send(200, await asyncio.to_thread(packed_bomb, int(argument or BOMB)), {"Content-Encoding": "gzip"})


async def unpacks(asked: Asked, answer: Answer, argument: str) -> None:
    """Send some 60 to 120 KB that unpack to 60 MB: ``unpacks:flat``, ``unpacks:paragraphs``, ``unpacks:nested``,
    ``unpacks:twice`` (in two codings); or to 1.4 MB, as a page may:
    ``unpacks:ratio20``."""
    body, coding = await asyncio.to_thread(unpacking, argument or "flat")
    await answer.send(200, body, {"Content-Encoding": coding})


async def loop(asked: Asked, answer: Answer, argument: str) -> None:
    """Redirect to itself."""
    await answer.send(302, b"", {"Location": asked.path})


async def maze(asked: Asked, answer: Answer, argument: str) -> None:
    """Redirect ever further, each time to another URL."""
    path, _, step = asked.path.partition("?step=")
    await answer.send(302, b"", {"Location": f"{path}?step={int(step or 0) + 1}"})


async def redirect(asked: Asked, answer: Answer, argument: str) -> None:
    """Redirect to a URL: ``redirect:http://169.254.169.254/``."""
    await answer.send(302, b"", {"Location": argument})


async def to(asked: Asked, answer: Answer, argument: str) -> None:
    """Redirect to another host of this web: ``to:HOST/PATH``."""
    host, _, path = argument.partition("/")
    port = asked.headers.get("host", "").rpartition(":")[2]
    await answer.send(301, b"", {"Location": f"http://{host}:{port}/{path}"})


async def cookie_wall(asked: Asked, answer: Answer, argument: str) -> None:
    """Redirect to itself until a cookie comes back."""
    if "cookie" in asked.headers:
        await answer.send(200, _PAGE)
    else:
        await answer.send(302, b"", {"Location": asked.path, "Set-Cookie": "seen=1"})


async def charset(asked: Asked, answer: Answer, argument: str) -> None:
    """Say UTF-8, and send windows-1251."""
    body = "<p>Страница в другой кодировке, чем сказано.</p>".encode("cp1251")
    await answer.send(200, body, {"Content-Type": "text/html; charset=utf-8"})


async def truncated(asked: Asked, answer: Answer, argument: str) -> None:
    """Close the connection in the middle of a chunk."""
    answer.closes = True
    await answer.begin(200, {"Transfer-Encoding": "chunked"})
    await answer.write(b"%x\r\n%b" % (2 * len(_PAGE), _PAGE))
    raise Gone


async def short(asked: Asked, answer: Answer, argument: str) -> None:
    """Close the connection before as much is sent as the head said."""
    answer.closes = True
    await answer.begin(200, {"Content-Length": str(2 * len(_PAGE))})
    await answer.write(_PAGE)
    raise Gone


async def reset(asked: Asked, answer: Answer, argument: str) -> None:
    """Close the connection without an answer."""
    raise Gone


async def garbage(asked: Asked, answer: Answer, argument: str) -> None:
    """Answer with what is no HTTP."""
    answer.closes = True
    await answer.write(b"\x00\xff\x17 this is not HTTP\r\n\r\n")
    raise Gone


@cache
def packed_bomb(mebibytes: int) -> bytes:
    """Return the body of a bomb."""
    packing = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    parts = [packing.compress(b"<p>much text\n".ljust(_MEBIBYTE)) for _ in range(mebibytes)]
    return b"".join([*parts, packing.flush()])


@cache
def unpacking(kind: str) -> tuple[bytes, str]:
    """Return a body that unpacks to far more, and its codings."""
    if kind == "ratio20":
        draw = random.Random(1)
        parts = (b"<p>%b%b</p>" % (draw.randbytes(80).hex().encode(), b"said so, " * 200) for _ in range(700))
        return zlib.compress(b"".join(parts), 9), "deflate"
    if kind == "twice":
        return gzip.compress(gzip.compress(b"<p>a " * (12 * _MEBIBYTE), mtime=0), mtime=0), "gzip, gzip"
    unit = {"flat": b"much text ", "paragraphs": b"<p>a ", "nested": b"<div>"}[kind]
    return gzip.compress(unit * (60 * _MEBIBYTE // len(unit)), mtime=0), "gzip"


KINDS: Final[Mapping[str, Callable[[Asked, Answer, str], Awaitable[None]]]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(status, retry_after, slow, hang, drip, endless, bomb, unpacks, loop, maze, redirect, cookie_wall, charset),
        *(truncated, short, reset, garbage, to),
    )
}
EXAMPLES: Final = (
    *(
        "status:503",
        "status:404",
        "retry-after:5",
        "slow:2",
        "hang",
        "drip:30",
        "endless",
        "bomb",
        "unpacks:twice",
        "loop",
        "maze",
    ),
    *("redirect:http://169.254.169.254/", "cookie-wall", "charset", "truncated", "short", "reset", "garbage"),
    *("to:status-404.test/", "flaky:2", REFUSING, NOWHERE),
)
"""One of each kind, with an argument where it takes one."""


def host_of_example(kind: str) -> str:
    """Return a host for a kind: ``slow-2.test`` for ``slow:2``."""
    name, _, argument = kind.partition(":")
    return f"{name}-{argument}.test" if argument.isdecimal() else f"{name}.test"


class Misbehaviour:
    """The rules of a web: kinds by ``host``, ``host/path`` or ``/path`` (of any host), the most precise first."""

    def __init__(self, rules: Mapping[str, str]) -> None:
        for kind in rules.values():
            check(kind)
        self._rules = rules
        self._asked: Counter[tuple[str, str]] = Counter()

    def of(self, asked: Asked) -> str | None:
        """Return what a request meets; None where nothing is wrong."""
        path = asked.path.partition("?")[0]
        if path.startswith(SHOWN):
            kind = asked.path.removeprefix(SHOWN).partition("/")[0]
            return kind if kind.partition(":")[0] in KINDS else None
        places = (asked.host + path, asked.host, path)
        found = next((self._rules[place] for place in places if place in self._rules), None)
        if found is not None and found.startswith("flaky:"):  # fails so often, by path, then no longer
            self._asked[asked.host, path] += 1
            return "status:503" if self._asked[asked.host, path] <= int(found.partition(":")[2]) else None
        return found

    async def answer(self, kind: str, asked: Asked, answer: Answer) -> None:
        """Misbehave."""
        name, _, argument = kind.partition(":")
        await KINDS[name](asked, answer, argument)


def check(kind: str) -> None:
    """Raise ValueError for a kind that is not known."""
    known = {*KINDS, "flaky", REFUSING, NOWHERE}
    if kind.partition(":")[0] not in known:
        raise ValueError(f"{kind} is not known; known are: {', '.join(sorted(known))}")

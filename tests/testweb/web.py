"""A local web: pages and misbehaviour behind real servers, with the hosts file and the seeds file of a crawl."""

from __future__ import annotations

import asyncio
import re
import resource
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from crawl4llm.base.domains import domain_of
from tests.testweb.misbehaviour import NOWHERE, REFUSING, Misbehaviour
from tests.testweb.pages import Pages
from tests.testweb.server import Answer, Asked, Logged, Server

_NOBODYS: Final = "127.255.255.1"
"""An address of this machine at which no server of ours listens."""
_PER_RANGE: Final = 250
_NOTICED: Final = 0.1
"""Seconds after which a server has noticed that the crawler has broken an exchange off; only then it logs its end."""
_LINK = re.compile(rb"""(?:https?:)?//([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?=[/"'?#\s<>&\\]|\Z)""", re.IGNORECASE)


class LocalWeb:
    """A web on this machine: ``folder`` gets the files ``hosts``, ``seeds.txt`` and ``access.jsonl``.

    ``misbehaving`` has kinds of :mod:`tests.testweb.misbehaviour` by ``host``, ``host/path`` or ``/path``; hosts that
    have no pages may be among them. A host's rule is not for its robots.txt, which is named ``host/robots.txt``.
    ``robots`` has the text of robots.txt by host, ``*`` for all others; without one it is answered 404. Hosts are
    spread over ``addresses`` addresses, by default one each (which Linux has without more ado; elsewhere 1 is the
    most): a crawl may keep to a rate for each. Links to hosts of this web lead to its port.
    """

    def __init__(
        self,
        folder: Path,
        pages: Pages,
        *,
        misbehaving: Mapping[str, str] | None = None,
        robots: Mapping[str, str] | None = None,
        addresses: int | None = None,
        port: int = 0,
    ) -> None:
        self._folder, self._pages = folder, pages
        self._rules = misbehaving or {}
        self._misbehaviour = Misbehaviour(self._rules)
        self._robots = robots or {}
        named = (place.partition("/")[0] for place in self._rules)
        self.hosts = list(dict.fromkeys([*pages.homes, *filter(None, named)]))
        self._most = len(self.hosts) if addresses is None else addresses
        self.port = port
        """0, until it is started, where any will do."""
        self._server: Server | None = None
        self._log: IO[str] | None = None

    @property
    def hosts_file(self) -> Path:
        """For DNS_HOSTS."""
        return self._folder / "hosts"

    @property
    def seeds_file(self) -> Path:
        """A page of each host, but of those at which no crawl begins."""
        return self._folder / "seeds.txt"

    @property
    def log_file(self) -> Path:
        """The access log, for :func:`tests.testweb.server.read_log`; one of a former web is written anew."""
        return self._folder / "access.jsonl"

    @property
    def seeds(self) -> list[str]:
        """What the seeds file has."""
        return [self.url(host) for host in self.hosts if self._pages.homes.get(host, "/")]

    def url(self, host: str, path: str | None = None) -> str:
        """Return a URL of a host; without a path, of its shortest one."""
        return f"http://{host}:{self.port}{self._pages.homes.get(host, '/') if path is None else path}"

    def address(self, host: str) -> str | None:
        """Return the address of a host; None where it does not resolve."""
        kind = self._rules.get(host)
        if kind in {NOWHERE, REFUSING}:
            return None if kind == NOWHERE else _NOBODYS
        number = self.hosts.index(host) % self._most
        return f"127.1.{number // _PER_RANGE}.{number % _PER_RANGE + 1}" if self._most > 1 else "127.0.0.1"

    async def start(self) -> None:
        """Serve, and write the files. Raises OSError where the port is taken."""
        _raise_limit()
        self._folder.mkdir(parents=True, exist_ok=True)
        lines = {host: self.address(host) for host in self.hosts}
        listening = dict.fromkeys(address for address in lines.values() if address not in {None, _NOBODYS})
        self._log = self.log_file.open("w", encoding="utf-8")
        self._server = Server(self._answer, self._log)
        self.port = await self._server.start([address for address in listening if address], self.port)
        self.hosts_file.write_text("".join(f"{address} {host}\n" for host, address in lines.items() if address))
        self.seeds_file.write_text("".join(f"{seed}\n" for seed in self.seeds))

    async def stop(self) -> None:
        """Serve no longer."""
        assert self._server is not None
        assert self._log is not None
        await self._server.stop()
        self._log.close()

    async def _answer(self, asked: Asked, answer: Answer) -> None:
        kind = self._misbehaviour.of(asked)
        if kind is not None and (asked.path != "/robots.txt" or f"{asked.host}/robots.txt" in self._rules):
            await self._misbehaviour.answer(kind, asked, answer)
        elif asked.path == "/robots.txt" and (text := self._robots.get(asked.host, self._robots.get("*"))) is not None:
            await answer.send(200, text.encode(), {"Content-Type": "text/plain"})
        elif (found := self._pages.find(asked.host, asked.path)) is None:
            await answer.send(404, b"<p>not here")
        elif isinstance(found, str):
            await answer.send(301, b"", {"Location": self.url(asked.host, found)})
        else:
            await answer.send(200, _LINK.sub(self._lead_here, found))

    def _lead_here(self, link: re.Match[bytes]) -> bytes:
        host = link[1].decode().lower()
        return f"http://{host}:{self.port}".encode() if host in self._pages.homes or host in self._rules else link[0]


@contextmanager
def running(web: LocalWeb) -> Iterator[LocalWeb]:
    """Run a web in a thread of its own."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        try:
            await web.start()
        except OSError as error:
            started.set_exception(error)
            return
        stop = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()
        await web.stop()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    loop, stop = started.result()
    try:
        yield web
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def waits(requests: Iterable[Logged]) -> dict[str, list[float]]:
    """Return, by owner (registrable domain), the seconds from the end of each exchange to the next request.

    They are negative where a request came before the last one had ended. Exchanges that the crawler broke off count as
    ended 0.1 s before the server logged it, because a server notices late.
    """
    owners: defaultdict[str, list[Logged]] = defaultdict(list)
    for request in sorted(requests, key=lambda request: request.arrived):
        owners[domain_of(request.host)].append(request)
    found: dict[str, list[float]] = {}
    for owner, of_owner in owners.items():
        ended, found[owner] = _end_of(of_owner[0]), []
        for request in of_owner[1:]:
            found[owner].append(request.arrived - ended)
            ended = max(ended, _end_of(request))
    return found


def _end_of(request: Logged) -> float:
    """Return when an exchange ended for the crawler, as far as a server can say."""
    return request.ended if request.whole else max(request.ended - _NOTICED, request.arrived)


def _raise_limit() -> None:
    """Allow this process as many open files as it may have: each address and each connection takes one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

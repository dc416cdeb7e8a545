"""The web servers' logs as requests in order of time: one format of nginx, Apache and lighttpd, and Caddy's JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_OUT_OF_COUNT = {"/robots.txt", "/.well-known/tdmrep.json"}


class Asked(NamedTuple):
    """A request that a server answered."""

    time: float
    scheme: str
    host: str
    target: str
    status: int
    size: int
    """Bytes of the body."""
    content_type: str
    agent: str

    @property
    def counted(self) -> bool:
        """Whether it is more than a question about permissions."""
        return self.target.partition("?")[0] not in _OUT_OF_COUNT

    @property
    def is_page(self) -> bool:
        """Whether it brought HTML."""
        return self.status == 200 and self.size > 0 and "html" in self.content_type


def marks(logs: Path) -> dict[Path, int]:
    """Return how long each log is, for :func:`since`."""
    return {file: file.stat().st_size for file in logs.glob("*") if file.suffix in {".log", ".json"}}


def since(logs: Path, began: dict[Path, int], agent: str) -> list[Asked]:
    """Return the requests of an agent that were logged after some marks, robots.txt and tdmrep.json apart."""
    found = [
        one
        for file in marks(logs)
        for one in (_caddy if file.suffix == ".json" else _lines)(file, began.get(file, 0))
        if one.agent.startswith(agent) and one.counted
    ]
    return sorted(found)


def _lines(file: Path, begin: int) -> Iterator[Asked]:
    with file.open("rb") as log:
        log.seek(begin)
        for line in log:
            fields = line.decode("utf-8", "replace").rstrip("\n").split("\t")
            if len(fields) != 8:
                continue  # a server's error log
            time, port, host, request, status, size, kind, agent = fields
            target = request.split(" ")[1] if request.count(" ") >= 2 else ""
            scheme = "https" if port == "443" else "http"
            seconds = float(time.replace("/", "."))  # lighttpd 1.4.69 writes 7/000 for 7.000
            yield Asked(seconds, scheme, host, target, int(status), int(size) if size != "-" else 0, kind, agent)


def _caddy(file: Path, begin: int) -> Iterator[Asked]:
    with file.open("rb") as log:
        log.seek(begin)
        for line in log:
            told = json.loads(line)
            if "request" not in told:
                continue
            request, answer = told["request"], told.get("resp_headers", {})
            agent = next(iter(request["headers"].get("User-Agent", [])), "")
            kind = next(iter(answer.get("Content-Type", [])), "")
            scheme = "https" if "tls" in request else "http"
            yield Asked(told["ts"], scheme, request["host"], request["uri"], told["status"], told["size"], kind, agent)

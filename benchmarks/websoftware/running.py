"""The web's processes: web servers, php-fpm, MariaDB and what sites need, all children of the benchmark.

Nothing of the system's services is touched: all files and sockets lie in the state folder, all ports are of
127.38.0.0/16 or of 127.0.0.1.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.websoftware.site import Backend
from benchmarks.websoftware.web_servers import Places, Served, commands

_START_SECONDS = 60.0
_PHP_WORKERS = 4
_ENDING = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
"""Has a process end with the benchmark, even if that is killed."""
_PHP_FPM = "php-fpm8.2"


def places(state: Path) -> Places:
    """Return where the files lie that servers share."""
    run = state / "run"
    for folder in (run, run / "logs"):
        folder.mkdir(parents=True, exist_ok=True)
    return Places(run, state / "tls/web.pem", state / "tls/web.key", run / "php.sock", run / "cgi.sock", run / "logs")


class Processes:
    """Child processes that end together."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._started: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, name: str, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
        """Start a process in a group of its own; what it prints goes to a file of its name."""
        with (self._logs / f"{name}.out").open("ab") as output:
            process = subprocess.Popen(
                [*_ENDING, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        self._started.append((name, process))

    def check(self) -> None:
        """Raise RuntimeError with the last words of a process that has ended."""
        for name, process in self._started:
            if process.poll() is not None:
                said = (self._logs / f"{name}.out").read_text(errors="replace")[-1000:]
                raise RuntimeError(f"{name} ended with status {process.returncode}: {said}")

    def wait_for(self, address: str | Path) -> None:
        """Wait until HOST:PORT or a socket file answers. Raises RuntimeError."""
        until = time.monotonic() + _START_SECONDS
        while not _answers(address):
            self.check()
            if time.monotonic() > until:
                raise RuntimeError(f"{address} does not answer after {_START_SECONDS:.0f} s; see {self._logs}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End all of them, the last first."""
        for _, process in reversed(self._started):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # workers that outlive their master
        self._started.clear()


def _answers(address: str | Path) -> bool:
    if isinstance(address, Path):
        family, target = socket.AF_UNIX, str(address)
        with socket.socket(family) as client, suppress(OSError):
            client.connect(target)
            return True
        return False
    host, _, port = address.rpartition(":")
    with suppress(OSError), socket.create_connection((host, int(port)), 1):
        return True
    return False


@contextmanager
def mariadb(state: Path, processes: Processes) -> Iterator[Path]:
    """Run the database in its own folder; yields its socket."""
    folder, at = state / "mariadb", places(state).folder / "mariadb.sock"
    if not (folder / "mysql").exists():
        shutil.rmtree(folder, ignore_errors=True)
        command = ["mariadb-install-db", "--no-defaults", f"--datadir={folder}", "--user=root", "--skip-test-db"]
        subprocess.run(command, check=True, capture_output=True)
    at.unlink(missing_ok=True)
    options = f"--no-defaults --user=root --skip-networking --datadir={folder} --socket={at}"
    tuned = "--innodb-flush-log-at-trx-commit=0 --innodb-buffer-pool-size=256M --pid-file=" + str(folder / "pid")
    processes.start("mariadb", ["mariadbd", *options.split(), *tuned.split()])
    processes.wait_for(at)
    yield at


def php(state: Path, processes: Processes, sites: Sequence[Served]) -> None:
    """Run php-fpm: a pool of processes that sites share, and the pools that some have for themselves."""
    at = places(state)
    backends = [Backend(at.folder), *(one.backend for one in sites if one.backend.pool)]
    configuration = at.folder / "php-fpm.conf"
    pools = "".join(_pool(at, backend) for backend in backends)
    configuration.write_text(f"[global]\nerror_log = {at.logs}/php.log\ndaemonize = no\n{pools}")
    for backend in backends:
        at.php_of(backend).unlink(missing_ok=True)
    processes.start("php-fpm", [_PHP_FPM, "-R", "-F", "-y", str(configuration)])
    for backend in backends:
        processes.wait_for(at.php_of(backend))


def _pool(at: Places, backend: Backend) -> str:
    """Return the configuration of a pool."""
    own = "".join(f"php_value[{name}] = {value}\n" for name, value in backend.settings.items())
    return (
        f"[{backend.pool or 'web'}]\nuser = root\ngroup = root\nlisten = {at.php_of(backend)}\nlisten.mode = 0666\n"
        f"pm = static\npm.max_children = {_PHP_WORKERS}\npm.max_requests = 2000\nclear_env = no\n"
        "php_admin_value[memory_limit] = 512M\nphp_admin_value[display_errors] = 0\n"
        "php_admin_value[opcache.revalidate_freq] = 600\n"
        f"php_admin_value[session.save_path] = {at.folder}\n{own}"
    )


def cgi(state: Path, processes: Processes) -> None:
    """Run fcgiwrap."""
    at = places(state).cgi
    at.unlink(missing_ok=True)
    processes.start("fcgiwrap", ["fcgiwrap", "-c", "2", "-s", f"unix:{at}"])
    processes.wait_for(at)


@contextmanager
def running(state: Path, sites: Sequence[Served]) -> Iterator[Processes]:
    """Serve sites until the block ends. Raises RuntimeError if something does not start."""
    at = places(state)
    processes = Processes(at.logs)
    try:
        kinds = {one.backend.kind for one in sites}
        if "php" in kinds:
            with mariadb(state, processes):
                php(state, processes, sites)
        if any(one.backend.kind == "cgi" and one.site.server == "nginx" for one in sites):
            cgi(state, processes)
        for one in sites:
            _start_backend(one.site.name, one.backend, processes)
        for command in commands(at, sites):
            processes.start(Path(command[0]).name, command)
        for one in sites:
            processes.wait_for(f"{one.addresses[one.site.host]}:{443 if one.site.scheme == 'https' else 80}")
        yield processes
    finally:
        processes.stop()


def _start_backend(name: str, backend: Backend, processes: Processes) -> None:
    for number, command in enumerate(backend.commands):
        processes.start(f"{name}-{number}", command, dict(backend.environment))
    if backend.socket:
        processes.wait_for(backend.socket)

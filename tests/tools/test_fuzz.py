"""The targets of ``python -m benchmarks.fuzz``, on their seeds and some changes of each, without Atheris."""

from __future__ import annotations

import subprocess
import sys

import pytest
from crawl_helpers import PROJECT

from benchmarks.fuzz.targets import TARGETS

_WATCHED = """
import os, socket, subprocess, sys, time
from pathlib import Path
from benchmarks.fuzz.guards import Guard
from benchmarks.fuzz.target import Reader, Target
from benchmarks.fuzz.watching import Watched

folder = Path(sys.argv[1])
(folder / "in").mkdir()
guard = Guard(folder / "in")

def raises(error):
    raise error

def spends(data):
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass

readers = {
    "writes inside": lambda data: (folder / "in/a").write_bytes(data),
    "reads outside": lambda data: (folder / "b").exists() or Path("/dev/null").read_bytes(),
    "documented": lambda data: raises(LookupError()),
    "writes outside": lambda data: (folder / "b").write_bytes(data),
    "climbs": lambda data: (folder / "in/../b").write_bytes(data),
    "swallows": lambda data: swallow(lambda: os.rename(folder / "in/a", folder / "b")),
    "removes": lambda data: os.remove(folder / "c"),
    "process": lambda data: subprocess.run(["true"]),
    "socket": lambda data: socket.create_connection(("127.0.0.1", 9)),
    "imports": lambda data: __import__("received_trap"),
    "raises": lambda data: raises(TypeError("x")),
    "exits": lambda data: sys.exit(0),
    "slow": spends,
    "large": lambda data: len(bytearray(b"x" * (120 << 20))),
}

def swallow(act):
    try:
        act()
    except Exception:
        pass

for name, read in readers.items():
    target = Target(name, None, None, seconds=0.2 if name == "slow" else 9, megabytes=64)
    fault = Watched(target, Reader(read, (LookupError,)), guard).run(b"data")
    print(f"{name}: {fault and fault.kind}")
"""


def _quick(*names: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.fuzz", "--quick", *names]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)


def test_no_reader_does_what_it_must_not() -> None:
    names = list(TARGETS)
    done = _quick(*names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.removesuffix(": 0 faults") for line in done.stdout.splitlines()] == names


def test_what_readers_must_not_do_is_seen(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("watched")
    (folder / "c").touch()
    command = [sys.executable, "-c", _WATCHED, str(folder)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert said.pop("raises").startswith("TypeError ")
    assert said.pop("exits").startswith("SystemExit ")
    assert said == {
        **dict.fromkeys(("writes inside", "reads outside", "documented"), "None"),
        **dict.fromkeys(("writes outside", "climbs"), "refused: open"),
        "swallows": "refused: os.rename",
        "removes": "refused: os.remove",
        "process": "refused: subprocess.Popen",
        "socket": "refused: socket.getaddrinfo",
        "imports": "refused: import",
        "slow": "slow",
        "large": "memory",
    }
    assert not (folder / "b").exists()
    assert (folder / "c").exists()

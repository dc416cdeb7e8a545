"""Commands with somebody at a terminal: in a process of their own, or in this one."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import tty
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
from crawl_helpers import PROJECT
from scrapy.cmdline import execute
from scrapy.settings import Settings


class Seen(NamedTuple):
    """What became of a command."""

    status: int
    out: str
    """What it printed to its standard output, which is no terminal."""
    screen: str
    """What was to be seen on the terminal."""


def at_terminal(*args: object, typed: str = "") -> Seen:
    """Run ``scrapy`` with its input and standard error output on a pseudo terminal, at which something was typed."""
    master, slave = pty.openpty()
    tty.setcbreak(slave)
    screen: list[bytes] = []

    def watch() -> None:
        while chunk := os.read(master, 4096):
            screen.append(chunk)
            if chunk.endswith(b"\0"):
                return

    watching = threading.Thread(target=watch)
    watching.start()
    os.write(master, typed.encode())
    out = io.StringIO()
    try:
        with (
            os.fdopen(os.dup(slave), encoding="utf-8") as keys,
            os.fdopen(os.dup(slave), "w", encoding="utf-8") as errors,
            patch("sys.stdin", keys),
            redirect_stdout(out),
            redirect_stderr(errors),
            pytest.raises(SystemExit) as ended,
        ):
            execute(["scrapy", *map(str, args)], Settings({"COMMANDS_MODULE": "crawl4llm.commands"}))
    finally:
        os.write(slave, b"\0")
        watching.join()
        os.close(slave)
        os.close(master)
    seen = b"".join(screen).rstrip(b"\0").decode()
    return Seen(int(ended.value.code or 0), out.getvalue(), seen)


def on_a_terminal(args: list[str], columns: int, cwd: Path = PROJECT) -> tuple[int, str, str]:
    """Run Python with standard error on a pseudo-terminal; its exit status, what that showed, and what was printed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen([sys.executable, *args], cwd=cwd, env=env, stdout=printed, stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux says so when the other side is closed
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        status = process.wait(timeout=600)
        printed.seek(0)
        return status, shown.decode(), printed.read().decode()

"""Files that are named from outside: endless, enormous and odd ones are refused, and cost no memory."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawl4llm.base.files import open_regular
from crawl4llm.base.input_files import given_path, input_lines, read_input, read_json

READERS: list[Callable[[Path], Any]] = [
    open_regular,
    lambda path: read_input(path, 9),
    read_json,
    lambda p: [*input_lines(p)],
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


def fault(read: Callable[[Path], Any], path: Path) -> str:
    """What is said of a file that cannot be read."""
    with pytest.raises(OSError, match=re.escape(str(path))) as error:
        read(path)
    return str(error.value.strerror)


@pytest.mark.parametrize("read", READERS)
def test_what_is_no_regular_file(read: Callable[[Path], Any], path: Path) -> None:
    os.mkfifo(path)
    assert fault(read, path) == "it is a FIFO, not a regular file"
    assert fault(read, Path("/dev/zero")) == "it is a device, not a regular file"
    assert fault(read, path.parent) == "Is a directory"


@pytest.mark.parametrize("read", READERS[1:])
def test_an_enormous_file(read: Callable[[Path], Any], path: Path) -> None:
    path.touch()
    os.truncate(path, 200_000_000_000)
    assert "more than" in fault(read, path)


def test_a_line_may_be_as_long_as_it_may(path: Path) -> None:
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfab\n" + b"abcd\r" + b"\xff\n"))
    assert [*input_lines(path, errors="replace", longest=5)] == ["ab\n", "abcd\n", "\ufffd\n"]
    assert (
        fault(lambda file: [*input_lines(file, errors="replace", longest=4)], path)
        == "line 2 has more than 4 characters"
    )


@pytest.mark.parametrize("content", [b"[" * 100_000, b"{", b"\xff", b'{"a":' * 100_000, b"[" * 101 + b"]" * 101])
def test_what_is_no_json(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        read_json(path)


def test_a_home_is_one_only_of_a_user_whom_the_machine_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert given_path("~/a") == given_path(Path("~/a")) == Path("/home/me/a")
    assert given_path("~nobody-of-this-name/a") == Path("~nobody-of-this-name/a")
    assert given_path("a~/b") == Path("a~/b")

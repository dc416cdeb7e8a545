"""The side file of opt-outs beside a tree: signals about the uses of its pages, for which the layout has no place.

``opt_outs.tsv`` begins with a line of JSON, ``{"format": "crawl4llm opt-outs", "version": 1, "known": true, "bytes":
9}``. After it come that number of bytes: a line ``ClueWeb22-ID<TAB>signals`` for each page with signals, ascending by
id. Signals have the form of :func:`crawl4llm.optouts.said.as_text`. If ``known`` is true, a page without a line has no
signals; else it may have some that the source did not tell. The file is searched on disk, and takes no memory.
"""

from __future__ import annotations

import json
import mmap
import shutil
from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import json_or_none, open_input
from crawl4llm.base.shapes import fits
from crawl4llm.optouts import as_text, from_text
from simulate.clueweb22.files import whole
from simulate.clueweb22.records import split_id

NAME: Final = "opt_outs.tsv"

_KIND: Final = "crawl4llm opt-outs"
_OURS: Final = {"format": {_KIND}}
_HEAD: Final = {**_OURS, "known": {bool}, "bytes": {int}}
"""Shapes of the first line: of any version, and of this one."""
_VERSION: Final = 1
_LONGEST_HEAD: Final = 1 << 12
_LONGEST_LINE: Final = 1 << 14
"""Bytes of a line at most; the signals of a page take a thousand."""


def write_opt_outs(root: Path, parts: Sequence[Path], *, known: bool) -> None:
    """Write the file of a tree from files of lines, in their order. Raises OSError."""
    head = {"format": _KIND, "version": _VERSION, "known": known, "bytes": sum(part.stat().st_size for part in parts)}
    with whole(root / NAME) as file:
        file.write(json.dumps(head).encode() + b"\n")
        for part in parts:
            with part.open("rb") as lines:
                shutil.copyfileobj(lines, file)


def opt_outs_line(key: str, signals: str) -> bytes:
    """Return the line of a page."""
    return f"{key}\t{signals}\n".encode()


class OptOuts:
    """The side file of a tree, opened. Raises InputError if it is damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with as_input_error(f"CORPUS {path}: cannot be read", form="{} ({})"), open_input(path) as file:
            head = file.readline(_LONGEST_HEAD)
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if head else b""
        self._start = len(head)
        told = json_or_none(head)
        if fits([told], _OURS):
            make = command("corpus", "build", "--to", "DIR", simulation=True, CORPUS="SOURCE")
            require_format(f"CORPUS {path}", told.get("version"), _VERSION, make)
        if not fits([told], _HEAD) or told["bytes"] != len(self._data) - self._start:
            raise self._damaged("cut short, or no file of opt-outs")
        self.known: bool = told["known"]
        """True if a page without a line has no signals."""

    def of(self, key: str) -> str:
        """Return the signals of a page; empty if it has none."""
        wanted = key.encode("utf-8", "replace")
        places = range(self._start, len(self._data))
        place = bisect_left(places, wanted, key=lambda place: self._line_at(place)[0])
        found, signals = self._line_at(places[place]) if place < len(places) else (b"", b"")
        return as_text(from_text(signals.decode("utf-8", "replace"))) if found == wanted else ""

    def _line_at(self, place: int) -> tuple[bytes, bytes]:
        """Return key and signals of the line that a byte is of."""
        start = self._data.rfind(b"\n", self._start - 1, place) + 1
        end = self._data.find(b"\n", place, start + _LONGEST_LINE)
        key, _, signals = self._data[start : end if end >= 0 else start + _LONGEST_LINE].partition(b"\t")
        return key, signals

    def check(self) -> None:
        """Raise InputError if a line is malformed or out of order: :meth:`of` would not find it."""
        before = ""
        with open_input(self._path) as file:
            file.seek(self._start)
            for number, line in enumerate(iter(partial(file.readline, _LONGEST_LINE), b""), 2):
                key, _, signals = line.decode("utf-8", "replace").rstrip("\n").partition("\t")
                if not line.endswith(b"\n") or split_id(key) is None or key <= before or not from_text(signals):
                    raise self._damaged(f"line {number} is no page with its signals, or not in order")
                before = key

    def _damaged(self, why: str) -> InputError:
        return InputError(f"CORPUS {self._path}: {why}; get it from the source of the tree, or build the tree again")

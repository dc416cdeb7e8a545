"""What a child is at: its input and a count in a file that its parent has mapped too, so that a crash loses neither."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Final

_HEAD: Final = struct.Struct("<QQ")
_SIZE: Final = 1 << 21


class SharedState:
    """The executions so far, and the input of the last one."""

    def __init__(self, path: Path) -> None:
        """Make the file if it is not there, and map it."""
        if not path.exists():
            path.write_bytes(bytes(_SIZE))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SIZE)
        self.executions = _HEAD.unpack_from(self._map)[0]
        """As the file said when it was opened; the child counts here."""

    def begin(self, data: bytes) -> None:
        """Note that an input is read now."""
        self.executions += 1
        size = min(len(data), _SIZE - _HEAD.size)
        self._map[_HEAD.size : _HEAD.size + size] = data[:size]
        _HEAD.pack_into(self._map, 0, self.executions, size)

    def read(self) -> tuple[int, bytes]:
        """Return the executions, and the last input."""
        executions, size = _HEAD.unpack_from(self._map)
        return executions, self._map[_HEAD.size : _HEAD.size + size]

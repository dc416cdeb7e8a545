"""The names of a series of WARC files."""

from __future__ import annotations

import re
import socket
from datetime import datetime, timezone

_TIMESTAMP = "%Y%m%d%H%M%S"


class FileNames:
    """``PREFIX-00000.warc.gz`` and so on; with ``host``, for live crawls, ``PREFIX-TIMESTAMP-00000-HOST.warc.gz``.

    The latter form is that of ISO 28500:2017, annex C.1; its time is that of the file's beginning, in UTC. The former
    has no clock, so that equal crawls make equal files.
    """

    def __init__(self, prefix: str, suffix: str, host: str | None = None) -> None:
        self.prefix, self.suffix, self.host = prefix, suffix, host
        start, end = re.escape(prefix), re.escape(suffix)
        form = rf"{start}-(\d{{5,}}){end}" if host is None else rf"{start}-(\d{{14}})-(\d{{5,}})-[\w.-]+{end}"
        self._form = re.compile(form, re.ASCII)

    def new(self, serial: int) -> str:
        """The name of a file that begins now."""
        if self.host is None:
            return f"{self.prefix}-{serial:05d}{self.suffix}"
        return f"{self.prefix}-{datetime.now(timezone.utc):{_TIMESTAMP}}-{serial:05d}-{self.host}{self.suffix}"

    def pattern(self, serial: int) -> str:
        """What the name of a file looks like, whenever and wherever it began."""
        return self.new(serial) if self.host is None else f"{self.prefix}-*-{serial:05d}-*{self.suffix}"

    def serial(self, name: str) -> int | None:
        """The number of the file of this name; None where that is not of the series. Any host will do."""
        found = self._form.fullmatch(name)
        digits = found.groups()[-1] if found else ""
        return int(digits) if digits and digits == f"{int(digits):05d}" else None

    def age(self, name: str) -> float:
        """Seconds since a file began; 0 where its name does not tell."""
        found = self._form.fullmatch(name) if self.host is not None else None
        if found is None:
            return 0.0
        began = datetime.strptime(found[1], _TIMESTAMP).replace(tzinfo=timezone.utc)
        return (datetime.now(timezone.utc) - began).total_seconds()


def host_name() -> str:
    """This machine's name, as file names can hold it: 64 characters, which is what Linux allows, at most."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:64] or "localhost"

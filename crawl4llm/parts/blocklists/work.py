"""Keeps the crawl from the domains of BLOCKLISTS: reads the lists, checks them for changes, and copies them to the
output.

``OUTPUT_DIR/blocklists/`` has each used version of each list, named by its digest. ``OUTPUT_DIR/blocklists.json`` names
the versions in force, so that refusals can be checked; exports use it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from crawl4llm.base.domain_lists import DomainList
from crawl4llm.base.domains import ascii_host
from crawl4llm.base.errors import InputError, Why, as_input_error
from crawl4llm.base.input_files import read_json
from crawl4llm.base.output_dir import BLOCKLIST_FILES, BLOCKLISTS
from crawl4llm.base.reasons import BLOCKLIST
from crawl4llm.base.run_folder import write_json
from crawl4llm.base.whole_files import replacing
from crawl4llm.base.within import require_within, within
from crawl4llm.parts.blocklists import Settings
from crawl4llm.parts.part import Part, Refusal

NAME: Final = "BLOCKLISTS"
"""The setting."""
_LARGEST_JSON: Final = 1 << 20
_SETTLED: Final = 1.0
"""Seconds since the last change of a list before it is read; until then somebody may still be writing to it."""
_HOSTS: Final = 65_536
"""Most hosts that are remembered."""


class Listed(NamedTuple):
    """The list that blocks a host."""

    name: str
    """Name of the list's file."""
    line: int
    digest: str
    """SHA-256 of the list, in hexadecimal."""


class Blocklists:
    """Domains of several lists to which no requests are sent; the first list with a host gives the reason."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        """Read the lists. Raises InputError that names an unusable one."""
        self.hold([DomainList(Path(path), NAME) for path in paths])
        self._stamps = [file_stamp(one.path) for one in self.lists]

    def __bool__(self) -> bool:
        return bool(self.lists)

    def find(self, url: str) -> Listed | None:
        """Return why a URL's host is blocked; None if it is not."""
        return self._find(ascii_host(url)) if self.lists else None

    @property
    def faults(self) -> list[str]:
        """A line on each list with unusable lines."""
        return [one.fault for one in self.lists if one.fault is not None]

    def changed(self, *, asked: bool = False) -> list[int]:
        """Return the indexes of lists whose files have changed, but not just now; with ``asked``, of all. Each change
        is returned once."""
        places = []
        for place, one in enumerate(self.lists):
            stamp = file_stamp(one.path)
            settled = stamp is None or abs(time.time() - stamp[0] / 1e9) >= _SETTLED
            if asked or (stamp != self._stamps[place] and settled):
                self._stamps[place] = stamp
                places.append(place)
        return places

    def hold(self, lists: Sequence[DomainList]) -> None:
        """Use these lists instead."""
        self.lists = list(lists)
        self._find = lru_cache(maxsize=_HOSTS)(self._look_up)

    def _look_up(self, host: str) -> Listed | None:
        for one in self.lists:
            if (line := one.line_of(host)) is not None:
                return Listed(one.path.name, line, one.digest)
        return None


def publish(lists: Sequence[DomainList], output: Path, *, fsync: bool = False) -> None:
    """Write lists into an output directory, and mark them as in force. Raises InputError."""
    folder = output / BLOCKLIST_FILES
    with as_input_error(f"{folder} cannot be written"):
        folder.mkdir(exist_ok=True)
        require_within(output, folder)
        for one in lists:
            path = folder / one.digest
            if one.data and not path.exists():
                with replacing(path, fsync=fsync) as file:
                    file.write(one.data)
            one.data = b""
    told = [{"name": one.path.name, "sha256": one.digest, "domains": len(one)} for one in lists]
    write_json(output / BLOCKLISTS, {"lists": told}, fsync=fsync)


def published(output: Path) -> Blocklists:
    """Return the lists in force in an output directory; empty if it has none. Raises InputError."""
    path = output / BLOCKLISTS
    require_within(output, path)
    try:
        digests = list(_digests(read_json(path, _LARGEST_JSON)))
    except FileNotFoundError:
        return Blocklists(())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path} is damaged; a resumed crawl writes it again") from None
    return Blocklists([within(output, f"{BLOCKLIST_FILES}/{digest}", path) for digest in digests])


def _digests(content: Any) -> Iterator[str]:
    """Yield the digests in blocklists.json. Raises ValueError if it has none in their places."""
    lists = content.get("lists") if isinstance(content, dict) else None
    for one in lists if isinstance(lists, list) else [None]:
        if not isinstance(one, dict) or not isinstance(one.get("sha256"), str):
            raise ValueError("no list")  # noqa: TRY004 - as what is not JSON does
        yield one["sha256"]


def file_stamp(path: Path) -> tuple[int, int, int] | None:
    """Return values that change with a file, its time of change in nanoseconds first; None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


logger = logging.getLogger(__name__)


class BlocklistsPart(Part):
    """See the module. A live crawl may change its ``lists`` while it runs."""

    name = "blocklists"

    def __init__(self, options: Settings) -> None:
        super().__init__(options)
        self.lists = Blocklists(options.blocklists)
        for fault in self.lists.faults:
            logger.warning("%s", fault)

    def identity(self) -> Mapping[str, Any]:
        return {"blocklists": [one.digest for one in self.lists.lists]}

    def blocks(self, url: str) -> Refusal | None:
        """The reason contains the digest of the list, which is its name in ``OUTPUT_DIR/blocklists/``."""
        if (listed := self.lists.find(url)) is None:
            return None
        return Refusal(BLOCKLIST, Why(f"BLOCKLISTS {listed.name}, line {listed.line} (sha256:{listed.digest})"))

    def publish(self, output: Path, *, fsync: bool) -> None:
        publish(self.lists.lists, output, fsync=fsync)

"""Control of a running crawl. In ``JOBDIR/control.json`` its operator changes delays and limits and blocks domains;
``OUTPUT_DIR/blocked.json`` lists the blocked domains for exports."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.domains import Domain, owner_of
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import read_json
from crawl4llm.base.output_dir import BLOCKED
from crawl4llm.base.pages import Corpus
from crawl4llm.base.run_folder import write_json
from crawl4llm.base.terminal import harmless
from crawl4llm.base.within import require_within
from crawl4llm.crawl.seeds import Seeds, read_seeds

CONTROL, LOCK, INJECT = "control.json", "control.json.lock", "inject"
_LARGEST: Final = 1 << 20
"""Most bytes of either file."""
_LONGEST_DELAY: Final = 86_400.0
"""Most seconds of a delay, as for Crawl-delay."""
_MOST: Final = 10**12


@dataclass(frozen=True)
class Control:
    """The content of control.json; by default nothing, so that the settings apply."""

    delay: float | None = None
    """Seconds between two exchanges with an owner, instead of DOWNLOAD_DELAY."""
    delays: Mapping[str, float] = field(default_factory=dict)
    """The same for single owners, by their names; may be longer or shorter."""
    max_pages: int | None = None
    """Instead of CRAWL_MAX_PAGES."""
    concurrent_requests: int | None = None
    """Instead of CONCURRENT_REQUESTS."""
    blocked: tuple[str, ...] = ()
    """Domains to which, and below which, nothing more is sent."""

    def delay_of(self, owner: str) -> float | None:
        """Return the delay of an owner, in seconds; None if DOWNLOAD_DELAY applies."""
        return self.delays.get(owner, self.delay)


def read_control(jobdir: Path) -> Control:
    """Read the control file of a crawl; without one the settings apply. Raises InputError that names file and key."""
    return checked_control(jobdir / CONTROL, _read(jobdir / CONTROL))


def set_blocked(jobdir: Path, domain: str, *, blocked: bool) -> tuple[Control, bool]:
    """Block or unblock a domain in control.json, and leave the rest of it. Returns its new content, and whether that
    changed. Several processes may do so at once. Raises InputError."""
    path = jobdir / CONTROL
    with _locked(jobdir / LOCK):
        content = _read(path)
        before = checked_control(path, content)
        names = {*before.blocked, domain} if blocked else {*before.blocked} - {domain}
        if names == set(before.blocked):
            return before, False
        content["blocked"] = sorted(names)
        write_json(path, content, fsync=True, private=True)
        return checked_control(path, content), True


def read_blocked(output: Path) -> tuple[str, ...]:
    """Return the domains whose pages in an output directory are not to be exported. Raises InputError."""
    path = output / BLOCKED
    require_within(output, path)
    content = _read(path)
    return checked_control(path, {"blocked": content.get("blocked", [])}).blocked


def blocked_around(folders: Iterable[Path]) -> tuple[str, ...]:
    """Return the domains that were blocked in the crawls whose archives, or copies of these, have files in folders.
    Raises InputError."""
    outputs = {one for folder in folders for one in (folder, *folder.parents[:2])}  # ClueWeb12's layout has two levels
    blocked = (read_blocked(output) for output in sorted(outputs) if (output / BLOCKED).exists())
    return tuple(sorted(set(chain.from_iterable(blocked))))


def write_blocked(output: Path, blocked: Iterable[str]) -> None:
    """Write the domains whose pages are not to be exported into an output directory. Raises InputError."""
    write_json(output / BLOCKED, {"blocked": sorted(blocked)}, fsync=True)


def publish_blocked(jobdir: Path, output: Path) -> None:
    """Write the domains that a crawl's control file blocks into its output directory. Raises InputError."""
    with _locked(jobdir / LOCK):
        blocked = read_control(jobdir).blocked
        known: tuple[str, ...] | None = None
        with suppress(InputError):  # what is damaged is written anew
            known = read_blocked(output)
        if known != blocked:
            write_blocked(output, blocked)


def _read(path: Path) -> dict[str, Any]:
    content: Any = {}
    with (
        as_input_error(f"{path} is not JSON", errors=ValueError),
        as_input_error(f"{path} cannot be read"),
        suppress(FileNotFoundError),
    ):
        content = read_json(path, _LARGEST)
    if not isinstance(content, dict):
        raise InputError(f'{path} is not a JSON object; write it like {{"delay": 10, "blocked": ["example.com"]}}')
    return content


def checked_control(path: Path | str, content: Mapping[str, Any]) -> Control:
    """Return the content of a control file, or of an object of a storage. Raises InputError that names the first wrong
    key."""
    known: dict[str, Any] = {}
    for key, value in content.items():
        if key not in _CHECKS:
            raise InputError(f"{path}: {harmless(key)[:80]!r} is not known; known are: {', '.join(_CHECKS)}")
        with as_input_error(f"{path}: {key}", form="{} {}", errors=ValueError):
            known[key] = _CHECKS[key](value)
    return Control(**known)


def _seconds(value: Any) -> float:
    if type(value) not in {int, float} or not 0 <= value <= _LONGEST_DELAY:  # not of NaN either
        raise ValueError(f"must be a number of seconds, from 0 to {_LONGEST_DELAY:.0f}")
    return float(value)


def _number(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= _MOST:
        raise ValueError("must be a positive integer")
    return value


def _delays(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise ValueError('must be an object, such as {"example.com": 30}')  # noqa: TRY004 - as all checks do
    delays: dict[str, float] = {}
    for given, seconds in value.items():
        name = _domain(given)
        owner = owner_of(f"http://{name}/")
        if owner != name:
            raise ValueError(f"has {name!r}, which has no delay of its own: give that of its owner, {owner!r}")
        with as_input_error(f"of {owner!r}", ValueError, "{} {}", ValueError):
            delays[owner] = _seconds(seconds)
    return delays


def _domains(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError('must be a list of domains, such as ["example.com"]')  # noqa: TRY004 - likewise
    return tuple(sorted({_domain(name) for name in value}))


def _domain(name: Any) -> str:
    try:
        return Domain(name).name
    except (InputError, TypeError):
        raise ValueError(f"has {name!r:.100}, which is not a domain; give it like example.com") from None


_CHECKS: Final = {
    "delay": _seconds,
    "delays": _delays,
    "max_pages": _number,
    "concurrent_requests": _number,
    "blocked": _domains,
}


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that ends with this process, after waiting for its holder."""
    with as_input_error(f"{path} cannot be opened"):
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


_DONE: Final = "done"
_LARGEST_SEEDS: Final = 16 << 20
"""Most bytes of a file, because all of its seeds are in memory at once."""
_SETTLED: Final = 1.0
"""Seconds since the last change of a file before it is read; until then somebody may still be writing to it."""


class InjectFolder:
    """Files of seeds for a running crawl, ``JOBDIR/inject/*.txt``, in the form of ``-a seeds=FILE``. Symbolic links and
    hidden files are ignored."""

    def __init__(self, jobdir: Path) -> None:
        self._folder = jobdir / INJECT

    def make(self) -> None:
        """Make the folder, so that files can be put there. Raises InputError."""
        with as_input_error(f"{self._folder} cannot be made"):
            self._folder.mkdir(exist_ok=True)

    def waiting(self) -> list[tuple[Path, int]]:
        """Return the files that can be read, by name, each with its time of change in nanoseconds.

        Raises InputError.
        """
        found: list[tuple[Path, int]] = []
        # the folder may be missing, or a file that was just taken away
        with as_input_error(f"{self._folder} cannot be read"), suppress(FileNotFoundError):
            found = [
                (path, path.lstat().st_mtime_ns)
                for path in self._folder.iterdir()
                if path.suffix == ".txt" and path.name[0] != "." and path.is_file() and not path.is_symlink()
            ]
        now = time.time()
        return sorted((path, changed) for path, changed in found if abs(now - changed / 1e9) >= _SETTLED)

    def read(self, path: Path, corpus: Corpus) -> Seeds:
        """Read a file in the form of a seeds file. Raises InputError, also if it is too long."""
        with as_input_error(f"{path} cannot be read"):
            size = path.stat().st_size
        if size > _LARGEST_SEEDS:
            raise InputError(f"{path} has more than {_LARGEST_SEEDS:,} bytes; divide its seeds among several files")
        return read_seeds(path, corpus)

    def finish(self, path: Path) -> None:
        """Move a file to ``done/`` once its seeds are committed. Raises InputError; the file is then read again, which
        changes nothing."""
        done = self._folder / _DONE
        number, to = 0, done / path.name
        with as_input_error(f"{path} cannot be moved to {to}"):
            done.mkdir(exist_ok=True)
            require_within(self._folder, done)
            while to.exists():
                number += 1
                to = done / f"{path.stem}.{number}{path.suffix}"
            path.rename(to)

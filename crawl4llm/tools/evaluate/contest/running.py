"""The crawls of a contest: each in a process of its own, and saved when it is done."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypeVar

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import read_json
from crawl4llm.base.processes import ChildEnded, in_children
from crawl4llm.base.whole_files import replacing
from crawl4llm.base.within import require_within

T = TypeVar("T")
CRAWLS: Final = "crawls"
"""The folder of saved results, in the contest's own."""
_DECIDE: Final = (
    *("*.py", "base/**/*.py", "scoring/**/*.py", "policies/**/*.py", "frontier/**/*.py", "crawl/**/*.py"),
    *("tools/evaluate/contest/crawling.py", "tools/evaluate/contest/web.py", "tools/evaluate/bound.py"),
    "tools/_fit.py",
)
"""The code that decides a crawl's findings."""


@cache
def code_digest() -> str:
    """Return the SHA-256 of the source files that decide a crawl's findings, because the version does not identify
    them."""
    package = Path(__file__).parents[3]
    whole = hashlib.sha256()
    for path in sorted(path for pattern in _DECIDE for path in package.glob(pattern)):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(package)} {content}\n".encode())
    return whole.hexdigest()


class SavedCrawls:
    """A folder with one file per crawl, whose name is a digest of all facts that decide the crawl's findings."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / CRAWLS

    def find(self, identity: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the saved results of a crawl; None without any, or if the file is damaged. Raises InputError."""
        path = self._path(identity)
        require_within(self._folder, path)
        try:
            content = read_json(path)
        except (FileNotFoundError, ValueError):
            return None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None
        if not isinstance(content, dict) or content.get("identity") != identity:
            return None
        record = content.get("crawl")
        return record if isinstance(record, dict) else None

    def save(self, identity: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        """Save a crawl's findings, wholly or not at all. Raises InputError if that fails."""
        path = self._path(identity)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path, path.with_name(f"{path.name}.{os.getpid()}.tmp"), fsync=True) as file:
                file.write(json.dumps({"identity": identity, "crawl": record}).encode())
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from None

    def _path(self, identity: Mapping[str, Any]) -> Path:
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        return self._folder / f"{digest[:32]}.json"


def in_processes(work: Callable[[T], None], tasks: Iterable[T], processes: int) -> Iterator[tuple[T, str | None]]:
    """Do the work on each task, in any order; yield the task and its failure in one line, None on success.

    Each has a forked process of its own: what one policy leaves behind or breaks is nothing to the next.
    """
    for task, outcome in in_children(partial(_failure, work), tasks, processes):
        try:
            yield task, outcome.result()
        except ChildEnded as ended:
            yield task, f"its process ended with {ended}"


def _failure(work: Callable[[T], None], task: T) -> str | None:
    try:
        work(task)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - policies are anybody's code
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        return " ".join(f"{kind}{error}".split())
    return None

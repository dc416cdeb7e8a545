"""The crawls of a contest as jobs: each in a process of its own, its findings put in a file when it is done."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypeVar

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.processes import ChildEnded, in_children
from crawl4llm.base.run_folder import read_json, write_text
from crawl4llm.base.shapes import fits
from crawl4llm.tools.evaluate.contest.results import CRAWL

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
        """Return the saved findings of a crawl; None without any, or if the file is damaged."""
        content = read_json(self._path(identity))
        found: dict[str, Any] | None = content.get("crawl")
        return found if content.get("identity") == identity and fits([found], CRAWL) else None

    def save(self, identity: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Save a crawl's findings, wholly or not at all. Raises InputError if that fails."""
        with as_input_error(f"{self._folder} cannot be written"):
            self._folder.mkdir(parents=True, exist_ok=True)
        write_text(self._path(identity), json.dumps({"identity": identity, "crawl": found}), fsync=True)

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

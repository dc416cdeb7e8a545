"""The texts of runs, in crawl order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crawl4llm.base import crawl_log
from crawl4llm.base.command_lines import merge_command
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path
from crawl4llm.base.object_store import is_storage
from crawl4llm.base.run_folder import WARC
from crawl4llm.base.within import require_within
from crawl4llm.options import read_options
from crawl4llm.scoring import PageWorkers, load_extractor
from crawl4llm.tools._text_sources import TextTaker, open_archives, text_to_learn
from crawl4llm.tools.opened_run import open_run
from crawl4llm.warc import INDEX_NAME
from simulate import PAGE

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

MISSING: Final = "not in the archive"
_PAGES_AT_ONCE: Final = 256
_FACTS: Final = ("crawl_id", "policy", "random_seed", "corpus_digest", "model_digest", "scorer")


class PageText(NamedTuple):
    """A crawled page."""

    text: str | None
    """None if it has no text that may be used."""
    fetched: int
    """Documents that the crawl had fetched with this page."""
    reason: str = ""
    """Why there is no text."""


@dataclass(frozen=True)
class Arm:
    """A run, as training data for a model."""

    name: str
    pages: Iterable[PageText]
    """In crawl order."""
    facts: Mapping[str, Any]
    """Facts of the run that the results repeat."""


def open_arms(settings: BaseSettings, given: Sequence[str]) -> list[Arm]:
    """Return the runs that are given. Raises InputError if one cannot be used, or they are of different corpora."""
    paths = [_path(one) for one in given]
    if len(set(paths)) < len(paths):
        raise InputError(f"{max(paths, key=paths.count)} is given twice; give each run once")
    facts = [_facts(path) for path in paths]
    for path, theirs in zip(paths[1:], facts[1:], strict=True):
        if theirs["corpus_digest"] != facts[0]["corpus_digest"]:
            raise InputError(
                f"{paths[0]} and {path} cannot be compared: they crawled different corpora ({facts[0]['corpus_digest']}"
                f" and {theirs['corpus_digest']}); give runs of one corpus"
            )
    names = _names(paths, facts)
    return [
        Arm(name, RunPages(path, settings), {"path": str(path), **theirs})
        for name, path, theirs in zip(names, paths, facts, strict=True)
    ]


def _path(given: str) -> Path:
    if is_storage(given):
        raise InputError(f"{given}: is a storage; make a run folder of it first: {merge_command(given)}")
    return open_run(given_path(given)).path


def _facts(path: Path) -> dict[str, Any]:
    settings = open_run(path).settings
    if not (path / WARC / INDEX_NAME).is_file():
        raise InputError(
            f"{path}: has no texts, because it has no archive ({WARC}/{INDEX_NAME}); was WARC_ENABLED off?"
        )
    return {name: settings.get(name) for name in _FACTS}


def _names(paths: Sequence[Path], facts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the policies, with the folders' names if runs have the same one."""
    policies = [str(one["policy"]) for one in facts]
    return [
        policy if policies.count(policy) == 1 else f"{policy} ({path.name})"
        for policy, path in zip(policies, paths, strict=True)
    ]


class RunPages:
    """The pages of a run's archive, in the order of its crawl log; each iteration reads them again."""

    def __init__(self, path: Path, settings: BaseSettings) -> None:
        self._path, self._settings = path, settings

    def __iter__(self) -> Iterator[PageText]:
        """Yield the pages. Raises InputError if log or archive cannot be read."""
        folder, log = self._path / WARC, self._path / crawl_log.NAME
        require_within(self._path, folder, log)
        options = read_options(self._settings)
        corpus, found = open_archives(folder, self._settings)
        taker = TextTaker(corpus, options.text_extractor, clean_text=not found.counts.get(PAGE))
        if not taker.clean_text:
            load_extractor(taker.extractor)
        lines = ((str(line.get("url")), _count(line, log)) for line in crawl_log.read_log(log))
        with closing(corpus), PageWorkers(taker, options.workers) as workers:
            workers.start()
            while some := list(islice(lines, _PAGES_AT_ONCE)):
                yield from _taken(workers, [(corpus.resolve(url), fetched) for url, fetched in some])


def _taken(workers: PageWorkers[TextTaker], pages: Sequence[tuple[str | None, int]]) -> Iterator[PageText]:
    """Yield the texts of some pages, given by key and number of fetches."""
    keys = [key for key, _ in pages if key is not None]
    texts = iter(workers.run_all(text_to_learn, keys))
    for key, fetched in pages:
        text = None if key is None else next(texts)
        if isinstance(text, str):
            yield PageText(text, fetched)
        else:
            yield PageText(None, fetched, MISSING if text is None else str(text.reason))


def _count(line: Mapping[str, Any], log: Path) -> int:
    if type(fetched := line.get("fetched")) is not int:
        raise InputError(f"{log} is damaged: a line has no number of fetched documents; get it again")
    return fetched

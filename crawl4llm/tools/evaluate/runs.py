"""Finished runs: read from their output directories, whether they can be compared, and measured along the crawl."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base import crawl_log
from crawl4llm.base.domains import domain_of_url
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import input_lines
from crawl4llm.base.output_dir import STORED_CRAWL
from crawl4llm.base.run_folder import LIVE, SEEDS, SETTINGS, STATS, read_json
from crawl4llm.base.within import require_within
from crawl4llm.crawl import is_done
from crawl4llm.scoring import Pages
from crawl4llm.tools._learnt import names_of
from crawl4llm.tools.evaluate.documents import (
    AT_ONCE,
    Fingerprints,
    Flags,
    Floats,
    Integers,
    Oracle,
    fingerprints,
    stored,
)

_SAME = ("corpus_digest", "model_digest", "scorer", "label", "text", "extractor")
"""Facts that decide influence scores: runs that differ in one of them cannot be compared."""
_OF_ONE_RUN = ("format", "crawl_id", STORED_CRAWL, "random_seed", "seeds_digest", "versions", "settings")
"""Facts of a run that do not decide how pages are chosen, and the seeds. Runs that agree in all other facts, those of
parts included, make one series."""


@dataclass(frozen=True)
class Run:
    """One crawl. Arrays have one value for each page crawled, in crawl order."""

    path: Path
    name: str
    """The policy; if several runs have the same policy, the directory's name too."""
    group: str
    """The name that it shares with runs that differ from it in their seeds only."""
    facts: Mapping[str, Any]
    """``settings.json``."""
    seeds: Sequence[str]
    """Keys of the seeds, as far as they are known."""
    unfinished: str | None
    """Why there may be fewer pages than the run was to crawl; None if it came to its end."""
    documents: Fingerprints
    priority: Floats
    influence: Floats
    """NaN if the log has null."""
    iterations: Floats
    """NaN in continuous order."""
    visited: Integers
    fetched: Integers
    domains: Integers
    """Registrable domains seen so far, with this page's."""
    is_new: Flags
    """True if the text is new: neither known nor like an earlier page's, as far as the log says."""

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def pages(self) -> Pages:
        """The pages that were crawled; their keys are in the crawl log."""
        return Pages(self.name, len(self), partial(_texts, self.path, "id", len(self)))

    def parents(self) -> Iterator[str]:
        """Yield the keys of the pages on which they were first seen; empty for seeds."""
        return _texts(self.path, "parent", len(self))

    @property
    def wanted(self) -> int:
        """N: the pages it was to crawl."""
        return int(self.facts["settings"]["CRAWL_MAX_PAGES"])

    @property
    def quality_threshold(self) -> float | None:
        """QUALITY_THRESHOLD; None if it was not set."""
        given = self.facts["settings"].get("QUALITY_THRESHOLD")
        return float(given) if type(given) in {int, float} else None


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """Return the runs in some output directories, which are of one corpus and one model.

    Raises InputError, naming the directory, if one holds no run that can be evaluated, or is given twice. Raises
    InputError with both values if two cannot be compared.
    """
    places = [path.resolve() for path in paths]
    if len(set(places)) < len(places):
        raise InputError(f"{max(places, key=places.count)} is given twice; give each run once")
    facts = [_facts(path) for path in paths]
    for path, theirs in zip(paths[1:], facts[1:], strict=True):
        for what in _SAME:
            if theirs[what] != facts[0][what]:
                raise InputError(
                    f"{paths[0]} and {path} cannot be compared: {what} is {facts[0][what]} in one, {theirs[what]} in "
                    "the other; evaluate them separately"
                )
    named = zip(paths, facts, names_of(paths, facts), _groups(paths, facts), strict=True)
    return [_read(path, theirs, name, group) for path, theirs, name, group in named]


def _groups(paths: Sequence[Path], facts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the name of each run's group: the policy; if it has several groups, their first run too."""
    alike = [
        json.dumps([{**theirs, **dict.fromkeys(_OF_ONE_RUN)}, theirs["settings"]["CRAWL_MAX_PAGES"]], sort_keys=True)
        for theirs in facts
    ]
    policies = {key: str(theirs["policy"]) for key, theirs in zip(alike, facts, strict=True)}
    names = {}
    for key, policy in policies.items():
        first, more = names_of(paths, facts)[alike.index(key)], alike.count(key) - 1
        alone = [*policies.values()].count(policy) == 1
        names[key] = policy if alone else f"{first} and {more} more" if more else first
    return [names[key] for key in alike]


def _facts(path: Path) -> dict[str, Any]:
    require_within(path, path / SETTINGS, path / STATS, path / SEEDS)
    if not (facts := read_json(path / SETTINGS)):
        raise InputError(f"{path}: {SETTINGS} is missing or damaged; give the OUTPUT_DIR of a crawl")
    if not all(name in facts for name in (*_SAME, "policy", "settings")):
        raise InputError(f"{path}: its {SETTINGS} names no corpus; only crawls of a corpus can be evaluated")
    if type(facts["settings"].get("CRAWL_MAX_PAGES")) is not int:
        raise InputError(f"{path}: {SETTINGS} is damaged: its settings have no CRAWL_MAX_PAGES")
    if facts.get("corpus") == LIVE:
        raise InputError(
            f"{path}: a live crawl has no corpus to evaluate it on; evaluate simulations of its archive (CORPUS={path})"
        )
    return facts


def _read(path: Path, facts: Mapping[str, Any], name: str, group: str) -> Run:
    columns = stored(_blocks(path), np.uint64, *[np.float64] * 3, *[np.int64] * 3, np.bool_)
    pages = len(columns[0])
    if not pages:
        raise InputError(f"{path}: no page was crawled, so there is nothing to evaluate; leave this run out")
    found = zip(_texts(path, "id", pages), _texts(path, "parent", pages), strict=True)
    seeds = _seeds(path) or [key for key, parent in found if not parent]
    return Run(path, name, group, facts, seeds, _why_unfinished(path), *columns)


def _texts(path: Path, field: str, count: int) -> Iterator[str]:
    """Return the texts of a field in the first lines of a crawl log, which are read there again and again."""
    lines = crawl_log.read_log(path / crawl_log.NAME)
    return (str(line.get(field) or "") for line in islice(lines, count))


def _blocks(path: Path) -> Iterator[list[NDArray[Any]]]:
    """Yield the columns of a crawl log, of some lines after the other."""
    domains: set[str] = set()
    lines = enumerate(crawl_log.read_log(path / crawl_log.NAME), 1)
    while True:
        keys, is_new, numbers = list[str](), list[bool](), array("d")
        for place, line in islice(lines, AT_ONCE):
            if not crawl_log.is_whole(line, crawl_log.CrawlLine) or line["fetched"] < 1:  # this page at least
                raise InputError(f"{path / crawl_log.NAME} is damaged: line {place} is not a line of a crawl log")
            domains.add(domain_of_url(line["url"]))
            keys.append(line["id"])
            is_new.append(line.get("near_duplicate_of") is None and not line.get("known_text"))
            known = (np.nan if line[name] is None else line[name] for name in ("priority", "influence", "iteration"))
            numbers.extend((*known, line["visited"], line["fetched"], len(domains)))
        if not keys:
            return
        yield [fingerprints(keys), *np.array(numbers).reshape(len(keys), -1).T, np.array(is_new)]


def _seeds(path: Path) -> list[str]:
    """Return the keys of the seeds that the crawl has written down; empty if there is no such file."""
    try:
        return [seed for line in input_lines(path / SEEDS, compressed=False) for seed in line.split()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise InputError(f"{path / SEEDS} cannot be read: {error}") from None


def _why_unfinished(path: Path) -> str | None:
    if not (stats := read_json(path / STATS)):
        return f"it is running or was killed: there is no {STATS} that can be read"
    reason = str(stats.get("finish_reason"))
    return None if is_done(reason) else f"it ended by {reason}"


# -- along the crawl ---------------------------------------------------------------------------------------------------


PRECISION, RECALL, INFLUENCE = "Precision", "Recall", "Mean influence"


class Band(NamedTuple):
    """A curve with its confidence band, one value for each point along a crawl."""

    value: Floats
    low: Floats
    high: Floats


def points_along(pages: int, most: int = 400) -> Integers:
    """Return at most ``most`` numbers of pages, evenly spread from 1 to ``pages``, which is one of them."""
    return np.unique(np.linspace(1, pages, min(pages, most)).round().astype(np.int64))


@dataclass(frozen=True)
class CrawledPages:
    """The pages of a run as documents of the survey; arrays are in crawl order.

    Its measures are values at each of some numbers of pages crawled.
    """

    run: Run
    numbers: Integers
    influence: Floats
    tokens: Integers
    oracle: Oracle
    """Of the corpus."""

    def __len__(self) -> int:
        return len(self.numbers)

    def hits(self) -> Integers:
        """Return the number of oracle pages after each page."""
        return _hits(self.influence, self.oracle.threshold.value)

    def precision(self, at: Integers) -> Band:
        """Return the share of oracle pages among the pages crawled (Craw4LLM, figure 4, left)."""
        return self._found_by(at, at)

    def recall(self, at: Integers) -> Band:
        """Return the share of the oracle set that is crawled (Craw4LLM, figure 4, right)."""
        return Band(*(np.minimum(share, 1.0) for share in self._found_by(at, self.oracle.size.value)))

    def harvest_rate(self, at: Integers) -> Band:
        """Return oracle pages crawled per page fetched."""
        return self._found_by(at, self.run.fetched[at - 1])

    def new_quality(self, at: Integers) -> Floats:
        """Return crawled pages of an influence of QUALITY_THRESHOLD or more, or of the oracle set without that setting,
        and with new texts, per 1,000 pages fetched."""
        given = self.run.quality_threshold
        threshold = self.oracle.threshold.value if given is None else given
        found = _hits(np.where(self.run.is_new, self.influence, np.nan), threshold)
        return 1000 * found[at - 1] / self.run.fetched[at - 1]

    def mean_influence(self, at: Integers) -> Floats:
        """Return the mean influence of the pages that have one; NaN if none has."""
        known = np.isfinite(self.influence)
        sums, counts = np.cumsum(np.where(known, self.influence, 0.0))[at - 1], np.cumsum(known)[at - 1]
        means: Floats = np.divide(sums, counts, out=np.full(len(at), np.nan), where=counts > 0)
        return means

    def measured(self, pages: int) -> dict[str, float]:
        """Return precision and recall of the oracle set, and the mean influence, after some number of pages."""
        at = np.array([pages])
        found = {PRECISION: self.precision(at).value, RECALL: self.recall(at).value, INFLUENCE: self.mean_influence(at)}
        return {name: float(values[0]) for name, values in found.items()}

    def _found_by(self, at: Integers, of: Integers | float) -> Band:
        """Return oracle pages found, as shares; the band is by the thresholds at which fewest and most belong to it."""
        value, low, high = self.oracle.threshold
        return Band(*(_hits(self.influence, threshold)[at - 1] / of for threshold in (value, high, low)))


def _hits(influence: Floats, threshold: float) -> Integers:
    return np.cumsum(influence >= threshold).astype(np.int64)

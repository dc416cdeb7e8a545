"""Finished runs read from their output directories, and whether they can be compared."""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base import crawl_log
from crawl4llm.base.domains import domain_of
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import input_lines
from crawl4llm.base.output_dir import STORED_CRAWL
from crawl4llm.base.run_folder import LIVE, SEEDS, SETTINGS, STATS, read_json
from crawl4llm.base.urls import host_of
from crawl4llm.base.within import require_within
from crawl4llm.crawl import is_done
from crawl4llm.tools.evaluate.documents import (
    AT_ONCE,
    Fingerprints,
    Flags,
    Floats,
    Integers,
    as_array,
    fingerprints,
    stored,
)

_SAME = ("corpus_digest", "model_digest", "scorer", "label", "text", "extractor")
"""Facts that decide influence scores: runs that differ in one of them cannot be compared."""
_OF_ONE_RUN = ("format", "crawl_id", STORED_CRAWL, "random_seed", "seeds_digest", "versions", "settings")
"""Facts of a run that do not decide how pages are chosen, and the seeds. Runs that agree in all other facts, those of
parts included, make one series."""


@dataclass(frozen=True)
class Logged(Collection[str]):
    """Texts in the first ``count`` lines of a crawl log, such as the keys; they are read there again and again."""

    path: Path
    field: str
    count: int

    def __iter__(self) -> Iterator[str]:
        lines = crawl_log.read_log(self.path / crawl_log.NAME)
        return (str(line.get(self.field) or "") for line in islice(lines, self.count))

    def __len__(self) -> int:
        return self.count

    def __contains__(self, text: object) -> bool:
        return any(one == text for one in self)


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
    keys: Collection[str]
    parents: Collection[str]
    """Keys of the pages on which they were first seen; empty for seeds."""
    documents: Fingerprints
    priority: Floats
    influence: Floats
    """NaN if the log has null."""
    visited: Integers
    fetched: Integers
    domains: Integers
    """Registrable domains seen so far, with this page's."""
    iterations: Floats
    """NaN in continuous order."""
    seeds: Sequence[str]
    """Keys of the seeds, as far as they are known."""
    is_new: Flags
    """True if the text is new: neither known nor like an earlier page's, as far as the log says."""
    unfinished: str | None
    """Why there may be fewer pages than the run was to crawl; None if it came to its end."""

    def __len__(self) -> int:
        return len(self.keys)

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

    Raises InputError, naming the directory, if one holds no run that can be evaluated. Raises InputError with both
    values if two cannot be compared.
    """
    facts = [_facts(path) for path in paths]
    for path, theirs in zip(paths[1:], facts[1:], strict=True):
        for what in _SAME:
            if theirs[what] != facts[0][what]:
                raise InputError(
                    f"{paths[0]} and {path} cannot be compared: {what} is {facts[0][what]} in one, {theirs[what]} in "
                    "the other; evaluate them separately"
                )
    named = zip(paths, facts, _names(paths, facts), _groups(paths, facts), strict=True)
    return [_read(path, theirs, name, group) for path, theirs, name, group in named]


def _groups(paths: Sequence[Path], facts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the name of each run's group: the policy; if it has several groups, their first run too."""
    alike = [
        json.dumps(
            [
                {name: value for name, value in theirs.items() if name not in _OF_ONE_RUN},
                theirs["settings"]["CRAWL_MAX_PAGES"],
            ],
            sort_keys=True,
        )
        for theirs in facts
    ]
    policies = {key: str(theirs["policy"]) for key, theirs in zip(alike, facts, strict=True)}
    names = {}
    for key, policy in policies.items():
        first, more = _names(paths, facts)[alike.index(key)], alike.count(key) - 1
        alone = [*policies.values()].count(policy) == 1
        names[key] = policy if alone else f"{first} and {more} more" if more else first
    return [names[key] for key in alike]


def _names(paths: Sequence[Path], facts: Sequence[Mapping[str, Any]]) -> list[str]:
    policies = [str(theirs["policy"]) for theirs in facts]
    names = [
        policy if policies.count(policy) == 1 else f"{policy} ({path.resolve().name})"
        for policy, path in zip(policies, paths, strict=True)
    ]
    if len(set(names)) < len(names):
        names = [f"{policy} ({path})" for policy, path in zip(policies, paths, strict=True)]
    return names


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
    found = stored(_blocks(path), np.uint64, *[np.float64] * 3, *[np.int64] * 3, np.bool_)
    documents, priority, influence, iterations, visited, fetched, domains, is_new = found
    if not len(documents):
        raise InputError(f"{path}: no page was crawled, so there is nothing to evaluate; leave this run out")
    keys, parents = (Logged(path, field, len(documents)) for field in ("id", "parent"))
    return Run(
        path=path,
        name=name,
        group=group,
        facts=facts,
        keys=keys,
        parents=parents,
        documents=documents,
        priority=priority,
        influence=influence,
        visited=visited,
        fetched=fetched,
        domains=domains,
        iterations=iterations,
        is_new=is_new,
        seeds=_seeds(path) or [key for key, parent in zip(keys, parents, strict=True) if not parent],
        unfinished=_why_unfinished(path),
    )


def _blocks(path: Path) -> Iterator[list[NDArray[Any]]]:
    """Yield the columns of a crawl log, of some lines after the other."""
    domains: set[str] = set()
    lines = enumerate(crawl_log.read_log(path / crawl_log.NAME), 1)
    while True:
        keys, is_new, numbers = list[str](), list[bool](), array("d")
        for place, line in islice(lines, AT_ONCE):
            try:
                domains.add(domain_of(host_of(line["url"])))
                keys.append(_text(line["id"]))
                _text(line["parent"] or "")
                is_new.append(line.get("near_duplicate_of") is None and not line.get("known_text"))
                known = (_number(line[name]) for name in ("priority", "influence", "iteration"))
                numbers.extend((*known, line["visited"], line["fetched"], len(domains)))
            except (LookupError, TypeError, ValueError):
                raise InputError(
                    f"{path / crawl_log.NAME} is damaged: line {place} is not a line of a crawl log"
                ) from None
        if not keys:
            return
        known_as = as_array(fingerprints(keys))
        yield [known_as, *np.array(numbers).reshape(len(keys), -1).T, np.array(is_new)]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)


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

"""Tracks: the webs, seeds and batches of a contest, by name or from a JSON file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from crawl4llm.base.command_lines import docs
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path, read_json
from crawl4llm.base.settings import is_corpus_class
from simulate import HOSTS, PAGES

REPORTING, TUNING = "reporting", "tuning"
HALVES: Final = (REPORTING, TUNING)
_OTHER_DEMO: Final = 100
"""A demo web to tune on has the seed of the one that is reported on, plus this."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""A web's name is part of file names."""
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_NUMBERS: Final = ("seed_sets", "seeds", "batch")


class Demo(NamedTuple):
    """The demo web of ``scrapy corpus demo`` with these numbers, which is built if it is missing."""

    pages: int
    hosts: int
    seed: int


@dataclass(frozen=True)
class WebSource:
    """The source of a web of a contest: a demo web, or a corpus with its model."""

    name: str
    demo: Demo | None = None
    corpus: str | None = None
    """A path as in CORPUS; dotted paths are refused, because a file must not choose code to run."""
    model: str | None = None
    """A path as in SCORER_MODEL; None: the value of that setting."""

    def for_half(self, half: str) -> WebSource:
        """Return the demo web for tuning in the place of the one for reporting; a corpus is divided by its hosts."""
        if self.demo is None or half == REPORTING:
            return self
        seed = self.demo.seed + _OTHER_DEMO
        return replace(self, name=f"{self.name}-tuning", demo=self.demo._replace(seed=seed))


@dataclass(frozen=True)
class Track:
    """The parameters that all crawls of a contest share."""

    name: str
    webs: Sequence[WebSource]
    seed_sets: int
    """Sets of seeds from which each policy crawls each web."""
    seeds: int
    """Pages of a set."""
    batch: int
    """Pages crawled between two decisions on the best documents: CRAWL_BATCH_SIZE."""


TRACKS: Final = {
    "small": Track(
        "small",
        [WebSource(f"demo-{seed}", demo=Demo(PAGES, HOSTS, seed)) for seed in (101, 102, 103)],
        seed_sets=6,
        seeds=100,
        batch=100,
    )
}
SMALL: Final = "small"


def read_track(named: str) -> Track:
    """Return a track by its name, or from a file. Raises InputError."""
    if named in TRACKS:
        return TRACKS[named]
    path = given_path(named)
    try:
        content = read_json(path)
    except FileNotFoundError:
        known = ", ".join(TRACKS)
        raise InputError(f"--contest {named}: no such track, and no such file; known are: {known}") from None
    except OSError as error:
        raise InputError(f"--contest {named} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"--contest {named} is no JSON file in UTF-8") from None
    try:
        return _track(content)
    except ValueError as error:
        raise InputError(f"--contest {named}: {error}; `{docs('contest')}` has an example") from None


def with_corpora(track: Track, paths: Sequence[str]) -> Track:
    """Return a track whose webs are those of some paths. Raises InputError if it is no path."""
    webs: list[WebSource] = []
    for path in paths:
        if is_corpus_class(path):
            raise InputError(f"--contest-web {path}: there is no such file")
        name = _NOT_IN_NAMES.sub("-", given_path(path).resolve().name).strip("-._") or "web"
        names = [name, *(f"{name}-{number}" for number in range(2, len(paths) + 1))]
        taken = {web.name.casefold() for web in webs}
        webs.append(WebSource(next(one for one in names if one.casefold() not in taken), corpus=path))
    return replace(track, webs=webs)


def _track(content: Any) -> Track:
    """Return the track in a file. Raises ValueError."""
    given = _object(content, "the file", {"track", "webs", *_NUMBERS})
    if not isinstance(given["webs"], list) or not given["webs"]:
        raise ValueError("webs is no list of webs")
    webs = [_web(web) for web in given["webs"]]
    if len({web.name.casefold() for web in webs}) < len(webs):
        raise ValueError("two webs have one name")
    return Track(_name(given["track"], "track"), webs, *(_positive(given[name], name) for name in _NUMBERS))


def _web(content: Any) -> WebSource:
    if isinstance(content, dict) and "demo" in content:
        given = _object(content, "a web", {"name", "demo"})
        demo = _object(given["demo"], "demo", set(Demo._fields))
        numbers = [_positive(demo[name], name) for name in Demo._fields]
        return WebSource(_name(given["name"], "name"), demo=Demo(*numbers))
    given = _object(content, "a web", {"name", "corpus", "model"})
    for part in ("corpus", "model"):
        if not isinstance(given[part], str) or not given[part] or is_corpus_class(given[part]):
            raise ValueError(f"{part} = {given[part]!r:.200} is no path")
    return WebSource(_name(given["name"], "name"), corpus=given["corpus"], model=given["model"])


def _object(content: Any, what: str, names: set[str]) -> Mapping[str, Any]:
    if not isinstance(content, dict) or set(content) != names:
        raise ValueError(f"{what} is no object with just {', '.join(sorted(names))}")
    return content


def _positive(value: Any, name: str) -> int:
    if type(value) is not int or not 0 < value < 1 << 31:
        raise ValueError(f"{name} = {value!r:.200} is not a positive integer")
    return value


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str) or not NAME.fullmatch(value) or len(value) > 60:
        raise ValueError(f"{what} = {value!r:.200} is no name of letters, digits, dots, hyphens and underscores")
    return value

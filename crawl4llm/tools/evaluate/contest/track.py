"""The webs, seeds and policies of a contest.

A track names webs and numbers of seeds; it has a name itself, or is a JSON file. Policies are the project's own, by
name, or anybody's, by file or dotted path.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.command_lines import docs
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import given_path, read_input, read_json
from crawl4llm.base.settings import is_corpus_class
from crawl4llm.base.shapes import Where, fits, misfit, whole
from crawl4llm.options import Options, own_settings
from crawl4llm.policies import SCORER_PREFIX, known_policies, load_policy
from crawl4llm.tools.evaluate.shares import BOUND
from simulate import HOSTS, PAGES

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

REPORTING, TUNING = "reporting", "tuning"
HALVES: Final = (REPORTING, TUNING)
_OTHER_DEMO: Final = 100
"""A demo web to tune on has the seed of the one that is reported on, plus this."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""A web's name is part of file names."""
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_POSITIVE: Final = whole(1, (1 << 31) - 1)
_NAME: Final = Where({str}, lambda name: NAME.fullmatch(name) and len(name) <= 60)
_PATH: Final = Where({str}, lambda path: path and not is_corpus_class(path))
"""Not a dotted path, because a file must not choose code to run."""
_NUMBERS: Final = dict.fromkeys(("seed_sets", "seeds", "batch"), _POSITIVE)
_TRACK: Final = {"track": _NAME, "webs": Where([{"name": _NAME}], bool), **_NUMBERS}
_DEMO: Final = dict.fromkeys(("pages", "hosts", "seed"), _POSITIVE)
_DEMO_WEB: Final = {"name": _NAME, "demo": Where(_DEMO, lambda demo: len(demo) == len(_DEMO))}
_CORPUS_WEB: Final = {"name": _NAME, "corpus": _PATH, "model": _PATH}
AHEAD: Final = "influence"
"""The policy that looks ahead, by pages crawled: it knows the influence of all documents that it discovers."""
_LARGEST: Final = 1 << 24
"""Bytes of a policy's file."""


@dataclass(frozen=True)
class WebSource:
    """The source of a web of a contest: a demo web, or a corpus with its model."""

    name: str
    demo: Mapping[str, int] | None = None
    """Pages, hosts and seed of a web of ``scrapy corpus demo``, which is built if it is missing."""
    corpus: str | None = None
    """A path as in CORPUS."""
    model: str | None = None
    """A path as in SCORER_MODEL; None: the value of that setting."""

    def for_half(self, half: str) -> WebSource:
        """Return the demo web for tuning in the place of the one for reporting; a corpus is divided by its hosts."""
        if self.demo is None or half == REPORTING:
            return self
        seed = self.demo["seed"] + _OTHER_DEMO
        return replace(self, name=f"{self.name}-tuning", demo={**self.demo, "seed": seed})


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
        [WebSource(f"demo-{seed}", demo={"pages": PAGES, "hosts": HOSTS, "seed": seed}) for seed in (101, 102, 103)],
        seed_sets=6,
        seeds=100,
        batch=100,
    )
}
SMALL: Final = "small"


def read_track(named: str, corpora: Sequence[str] = ()) -> Track:
    """Return a track by its name, or from a file; with ``corpora``, with these as its webs. Raises InputError."""
    track = TRACKS[named] if named in TRACKS else _from_file(named)
    return replace(track, webs=_webs_at(corpora)) if corpora else track


def _from_file(named: str) -> Track:
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


def _webs_at(paths: Sequence[str]) -> list[WebSource]:
    """Return the webs at some paths. Raises InputError if one is no path."""
    webs: list[WebSource] = []
    for path in paths:
        if is_corpus_class(path):
            raise InputError(f"--contest-web {path}: there is no such file")
        name = _NOT_IN_NAMES.sub("-", given_path(path).resolve().name).strip("-._") or "web"
        names = [name, *(f"{name}-{number}" for number in range(2, len(paths) + 1))]
        taken = {web.name.casefold() for web in webs}
        webs.append(WebSource(next(one for one in names if one.casefold() not in taken), corpus=path))
    return webs


def _track(content: Any) -> Track:
    """Return the track in a file. Raises ValueError."""
    _require(content, _TRACK)
    for web in content["webs"]:
        _require(web, _DEMO_WEB if "demo" in web else _CORPUS_WEB)
    webs = [WebSource(**web) for web in content["webs"]]
    if len({web.name.casefold() for web in webs}) < len(webs):
        raise ValueError("two webs have one name")
    return Track(content["track"], webs, *(content[name] for name in _NUMBERS))


def _require(content: Any, shape: Mapping[str, Any]) -> None:
    """Raise ValueError unless an object has the fields of a shape, and no others."""
    if not fits([content], shape):
        raise ValueError(misfit(content, shape))
    if unknown := content.keys() - shape.keys():
        raise ValueError(f"{min(unknown)!r:.200} is no field of it")


# -- policies ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entrant:
    """A policy of a contest."""

    name: str
    url_policy: str
    """A value of URL_POLICY."""
    digest: str | None
    """SHA-256 of its file; None for one of the project's own, which the version and the digest of the code identify."""
    looks_ahead: bool
    """True if it is a bound, which is not ranked: it looks ahead, or has read pages beforehand."""
    reads: list[str]
    """The parts that it reads of pages that were not fetched: its ``corpus_parts``."""
    own: Mapping[str, Any]
    """Values of its own settings."""


def read_entrants(names: Sequence[str], settings: BaseSettings) -> list[Entrant]:
    """Return the policies that are named, by name, file or dotted path; by default the project's that do not look
    ahead, and AHEAD. Raises InputError, naming the policy."""
    found: dict[str, Entrant] = {}
    for name in names or [name for name in known_policies() if not load_policy(name).looks_ahead] + [AHEAD]:
        entrant = _entrant(name, settings)
        if entrant.name in found:
            raise InputError(f"--policies: two are called {entrant.name}; name each once, and rename files if needed")
        found[entrant.name] = entrant
    return list(found.values())


def _entrant(given: str, settings: BaseSettings) -> Entrant:
    name = url_policy = given
    digest = None
    if given.endswith(".py"):
        path = given_path(given)
        name, digest = path.stem, _digest(path)
        url_policy = f"{_import(path)}.Policy"
    elif "." in given and not given.startswith(SCORER_PREFIX):
        name = given.removesuffix(".Policy").rpartition(".")[2]
        with _anybodys(given):
            module = import_module(given.rpartition(".")[0])
        digest = _digest(Path(str(module.__file__)))
    found = load_policy(url_policy)
    own = own_settings(settings, Options(url_policy=url_policy)) or {}
    is_bound = bool(found.looks_ahead) or url_policy == BOUND
    return Entrant(name, url_policy, digest, is_bound, list(found.corpus_parts), own)


def _digest(path: Path) -> str:
    with as_input_error(f"--policies {path} cannot be read"):
        return hashlib.sha256(read_input(path, _LARGEST)).hexdigest()


def _import(path: Path) -> str:
    """Run a file that the user named as a module; return the module's name."""
    name = "contest_" + re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    with _anybodys(str(path)):
        spec.loader.exec_module(module)
    return name


@contextmanager
def _anybodys(given: str) -> Iterator[None]:
    """Raise InputError if code that is imported fails, in whatever way."""
    try:
        yield
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is not ours
        raise InputError(f"--policies {given} cannot be loaded ({type(error).__name__}: {error})") from None

"""The webs of a contest: a track names them, or a corpus takes their place, and each becomes the subject of crawls.

A track has a name, or is a JSON file; it also says from how many sets of seeds each web is crawled. A subject is what
all crawls of a web share: pages in memory, scores, seeds, and the pages in reach.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crawl4llm.base.command_lines import docs
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import given_path, read_json
from crawl4llm.base.settings import is_corpus_class
from crawl4llm.base.shapes import Where, fits, misfit, whole
from crawl4llm.base.terminal import wants_bar
from crawl4llm.options import Options, read_options
from crawl4llm.policies import bound_text
from crawl4llm.scoring import PageRater
from crawl4llm.tools.evaluate.bound import bound_of, opened_web
from crawl4llm.tools.evaluate.contest.web import MemoryWeb, best_tenth, half_of, hashed_seeds
from crawl4llm.tools.evaluate.shares import BOUND
from simulate import HOSTS, PAGES, data_dir, ensure_demo, page_ranks

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

REPORTING: Final = "reporting"
"""The half on which results are reported; the other one is for tuning."""
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


SMALL: Final = Track(
    "small",
    [WebSource(f"demo-{seed}", demo={"pages": PAGES, "hosts": HOSTS, "seed": seed}) for seed in (101, 102, 103)],
    seed_sets=6,
    seeds=100,
    batch=100,
)


def read_track(named: str, corpora: Sequence[str] = ()) -> Track:
    """Return a track by its name, or from a file; with ``corpora``, with these as its webs. Raises InputError."""
    track = SMALL if named == SMALL.name else _from_file(named)
    return replace(track, webs=_webs_at(corpora)) if corpora else track


def _from_file(named: str) -> Track:
    path, no_json = given_path(named), f"--contest {named} is no JSON file in UTF-8"
    with as_input_error(f"--contest {named} cannot be read"), as_input_error(no_json, form="{}", errors=ValueError):
        if not path.exists():
            raise InputError(f"--contest {named}: no such track, and no such file; known are: {SMALL.name}")
        content = read_json(path)
    if fault := _fault(content):
        raise InputError(f"--contest {named}: {fault}; `{docs('contest')}` has an example")
    return Track(content["track"], [WebSource(**web) for web in content["webs"]], *map(content.get, _NUMBERS))


def _fault(content: Any) -> str | None:
    """Return what is wrong with the content of a track's file; None if nothing is."""
    webs = content["webs"] if fits([content], _TRACK) else []
    shapes: list[Mapping[str, Any]] = [_TRACK, *(_DEMO_WEB if "demo" in web else _CORPUS_WEB for web in webs)]
    for value, shape in zip([content, *webs], shapes, strict=True):
        if not fits([value], shape):
            return misfit(value, shape)
        if unknown := value.keys() - shape.keys():
            return f"{min(unknown)!r:.200} is no field of it"
    return "two webs have one name" if len({web["name"].casefold() for web in webs}) < len(webs) else None


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


# -- a web as it is crawled --------------------------------------------------------------------------------------------

_FEWEST_HOSTS: Final = 20
"""Hosts of a corpus that is divided into halves."""
_FEWEST_IN_REACH: Final = 100
"""Pages in reach of a set of seeds, so that each per cent of them is a page."""
_PAGES_PER_SEED: Final = 10
"""A web needs so many pages per seed: with fewer, the seeds are a large part of the oracle set."""
_OF_DEMO: Final = {
    "SCORER": "fasttext",
    "SCORER_LABEL": "__label__hq",
    "SIMULATION_TEXT": "corpus",
    "CLUEWEB22_TARGET_PREFIX": "",
}
"""Settings by which a demo web is the same for everybody."""
_KEPT: Final = ("scorer", "scorer_model", "scorer_label", "own_settings", "progress_bar")
"""The options of the user that count; all others have their defaults."""


class Start(NamedTuple):
    """A set of seeds, and the pages in reach of it."""

    seeds: Sequence[str]
    reach: int
    """Pages to which links lead from the seeds, those included."""
    oracle: int
    """Pages of the oracle set among them."""


@dataclass(frozen=True)
class Subject:
    """A web to crawl."""

    name: str
    half: str | None
    """The half of a corpus's hosts, or the purpose of a demo web; None for an undivided corpus."""
    web: MemoryWeb
    digest: str
    """See :meth:`MemoryWeb.digest`."""
    scores: Mapping[str, float | None]
    """Influence by key; None if it could not be computed."""
    oracle: set[str]
    starts: Sequence[Start]
    """By the number of the set of seeds."""
    rater: PageRater
    """Rates texts of this web for policies that ask for that."""
    options: Options
    """Those of _KEPT, besides defaults."""
    held: int
    """Pages of the whole corpus, those that cannot be read included."""

    def described(self) -> dict[str, Any]:
        """Return its entry of the results."""
        return {
            "name": self.name,
            "half": self.half,
            "digest": f"sha256:{self.digest}",
            "corpus_pages": self.held,
            "pages": len(self.web),
            "hosts": len(self.web.hosts()),
            "links": sum(len(self.web.outlinks(key)) for key in self.web.keys()),
            "oracle": len(self.oracle),
            "scorer": self.options.scorer,
            "model": f"sha256:{self.rater.scorer.digest}",
            "label": self.options.scorer_label,
            "sets": [
                {"seeds": len(start.seeds), "reach": start.reach, "oracle": start.oracle} for start in self.starts
            ],
        }

    def files_for(self, policies: Collection[str], folder: Path) -> dict[str, str]:
        """Write the files that some policies read to a folder; return the options that name them."""
        bar, found = wants_bar(self.options.progress_bar), {}
        if "harmonic" in policies:
            ranks = page_ranks(self.web, progress=bar)
            found["harmonic_ranks"] = "".join(f"{key}\t{rank!r}\n" for key, rank in ranks.items())
        if BOUND in policies:
            try:
                scores = bound_of(self.web, self.scores, progress=bar)
            except InputError:  # all pages are alike, so that any order is the best one
                scores = dict.fromkeys(self.web.keys(), 0.0)
            found["bound_scores"] = bound_text(scores, self.rater.corpus.identity(), self.rater.scorer.digest)
        for option, text in found.items():
            (folder / option).write_text(text, encoding="utf-8", errors="surrogatepass")
        return {option: str(folder / option) for option in found}


@contextmanager
def opened(source: WebSource, track: Track, half: str, settings: BaseSettings) -> Iterator[Subject]:
    """Open a web of a track, and score its pages, which is done once (see Survey). Raises InputError."""
    source = source.for_half(half)
    settings = _settings(source, settings)
    options = read_options(settings)
    with opened_web(source.name, settings) as (whole_web, known, corpus, rater):
        web, half_taken = _divided(whole_web, half) if source.demo is None else (whole_web, half)
        scores = {key: known[key] for key in web.keys()}
        oracle = best_tenth(scores)
        yield Subject(
            name=source.name,
            half=half_taken,
            web=web,
            digest=web.digest(scores),
            scores=scores,
            oracle=oracle,
            starts=_starts(web, oracle, track),
            rater=PageRater(web, rater.scorer, extractor=None),
            options=Options(**{name: getattr(options, name) for name in _KEPT}),
            held=len(corpus),
        )


def _settings(source: WebSource, settings: BaseSettings) -> BaseSettings:
    """Return the settings that mean this web and its model."""
    mine = settings.copy()
    given: dict[str, object] = {"CORPUS": source.corpus, "SCORER_MODEL": source.model}
    if source.demo is not None:
        show = wants_bar(read_options(settings).progress_bar)
        paths = ensure_demo(data_dir(), **source.demo, progress=show)
        given = {**_OF_DEMO, "CORPUS": str(paths.corpus), "SCORER_MODEL": str(paths.model)}
    for name, value in given.items():
        if value is not None:
            mine.set(name, value, priority="cmdline")
    return mine


def _divided(web: MemoryWeb, half: str) -> tuple[MemoryWeb, str | None]:
    """Return a half of a web's hosts, or all of them if there are few. Raises InputError if those are tuned on."""
    hosts = web.hosts()
    if len(hosts) >= _FEWEST_HOSTS:
        wanted = int(half == REPORTING)
        return web.of_hosts(web.title, lambda host: half_of(host) == wanted), half
    if half != REPORTING:
        raise InputError(
            f"{web.title} has {len(hosts)} hosts, but tuning on a half needs {_FEWEST_HOSTS}; leave out --half "
            f"{half}, or give another web"
        )
    return web, None


def _starts(web: MemoryWeb, oracle: set[str], track: Track) -> list[Start]:
    if len(web) < track.seeds * _PAGES_PER_SEED:
        raise InputError(
            f"{web.title} has {len(web):,} pages, and a contest from {track.seeds} seeds takes "
            f"{track.seeds * _PAGES_PER_SEED:,}; give a larger web, or a track file with fewer seeds"
        )
    starts = []
    for number in range(track.seed_sets):
        seeds = hashed_seeds(web, track.seeds, number)
        reach = web.reachable(seeds)
        start = Start(seeds, len(reach), len(reach & oracle))
        if start.reach < _FEWEST_IN_REACH or not start.oracle:
            raise InputError(
                f"{web.title}: seed set {number} reaches {start.reach:,} pages, {start.oracle:,} of the oracle set; "
                f"a contest takes {_FEWEST_IN_REACH} and 1: do its pages have links to each other?"
            )
        starts.append(start)
    return starts

"""``scrapy evaluate --contest``: from the command's arguments to the files of a contest."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path
from crawl4llm.base.tables import Part, facts
from crawl4llm.base.terminal import wants_bar
from crawl4llm.base.version import __version__
from crawl4llm.base.whole_files import check_free, replacing
from crawl4llm.options import read_options
from crawl4llm.tools._learnt import read_results as read_learnt
from crawl4llm.tools.evaluate.contest.crawling import MARKS, crawl
from crawl4llm.tools.evaluate.contest.entrants import Entrant, default_names, read_entrants
from crawl4llm.tools.evaluate.contest.page import markdown_of, report_of
from crawl4llm.tools.evaluate.contest.ranking import MOST_PAIRS
from crawl4llm.tools.evaluate.contest.results import LEARNT, Results, read_results, results_json
from crawl4llm.tools.evaluate.contest.running import CRAWLS, SavedCrawls, code_digest, in_processes
from crawl4llm.tools.evaluate.contest.subject import Subject, opened
from crawl4llm.tools.evaluate.contest.track import REPORTING, SMALL, Track, read_track, with_corpora
from crawl4llm.tools.evaluate.learnt import by_policy
from crawl4llm.tools.evaluate.report import write_report

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

RESULTS: Final = "contest.json"
_TABLE, _TIMES = "contest.md", "times.json"
_SECONDS: Final = "seconds"


@dataclass(frozen=True)
class Wanted:
    """The arguments of ``scrapy evaluate --contest``."""

    out: Path
    track: str = SMALL
    """A track's name, the file of one, or a file of results, whose report is made again."""
    webs: Sequence[str] = ()
    """Paths of corpora that take the place of the track's webs."""
    policies: Sequence[str] = ()
    """By name, file or dotted path; none: the project's own."""
    half: str = REPORTING
    as_json: bool = False
    """True to print the results themselves."""
    trained: Path | None = None
    """The results of ``scrapy trainlm`` of runs by some of the policies, elsewhere."""


class _Task(NamedTuple):
    """A crawl that is to be done."""

    entrant: Entrant
    number: int
    identity: Mapping[str, Any]


def hold(settings: BaseSettings, wanted: Wanted) -> Iterator[Part]:
    """Hold a contest, or go on with it, and write its results; yield lines about it.

    Raises InputError; if policies failed, after writing the results of the others.
    """
    learnt = None if wanted.trained is None else by_policy(read_learnt(wanted.trained))
    results = read_results(given_path(wanted.track))
    if results is not None:
        check_free(wanted.out)
    else:
        if not (wanted.out / CRAWLS).is_dir():
            check_free(wanted.out)
        track = read_track(wanted.track)
        if wanted.webs:
            track = with_corpora(track, wanted.webs)
        if len(track.webs) * track.seed_sets > MOST_PAIRS:
            raise InputError(
                f"track {track.name} has {len(track.webs)} webs with {track.seed_sets} sets of seeds each; a contest "
                f"takes at most {MOST_PAIRS} in all"
            )
        entrants = read_entrants(wanted.policies or default_names(), settings)
        results = _Contest(track, entrants, wanted, settings).results()
    if learnt is not None:
        results = replace(results, about={**results.about, LEARNT: learnt})
    yield from _written(results, wanted)
    if results.failures:
        failure = results.failures[0]
        policy, web, number = (failure[name] for name in ("policy", "web", "set"))
        more = f" ({len(results.failures)} policies failed)" if len(results.failures) > 1 else ""
        raise InputError(f"policy {policy} failed on {web}, seed set {number}: {failure['error']}{more}")


class _Contest:
    """The crawls of a contest."""

    def __init__(self, track: Track, entrants: Sequence[Entrant], wanted: Wanted, settings: BaseSettings) -> None:
        self._track, self._entrants, self._settings = track, entrants, settings
        self._half = wanted.half
        self._saved = SavedCrawls(wanted.out)
        options = read_options(settings)
        self._processes, self._bar = max(options.workers, 1), wants_bar(options.progress_bar)
        self._failures: dict[str, dict[str, Any]] = {}

    def results(self) -> Results:
        """Do the missing crawls, web by web."""
        track, webs, crawls = self._track, [], []
        for source in track.webs:
            with opened(source, track, self._half, self._settings) as subject:
                webs.append(subject.described())
                crawls += self._crawled(subject)
        about = {
            "version": __version__,
            "code": f"sha256:{code_digest()}",
            "track": track.name,
            "half": self._half,
            "seed_sets": track.seed_sets,
            "seeds": track.seeds,
            "batch": track.batch,
            "marks": list(MARKS),
        }
        policies = [entrant.described() for entrant in self._entrants]
        failures = [self._failures[entrant.name] for entrant in self._entrants if entrant.name in self._failures]
        return Results(about, webs, policies, crawls, failures)

    def _crawled(self, subject: Subject) -> list[dict[str, Any]]:
        """Return the findings of each policy from each set of seeds, except failed crawls."""
        tasks = [self._task(subject, one, number) for one in self._entrants for number in range(self._track.seed_sets)]
        missing = [task for task in tasks if self._saved.find(task.identity) is None]
        with tempfile.TemporaryDirectory() as folder:
            files = subject.files_for({task.entrant.url_policy for task in missing}, Path(folder))

            def work(task: _Task) -> None:
                self._saved.save(task.identity, crawl(subject, task.entrant, self._track, task.number, files))

            failed: list[tuple[_Task, str]] = []
            done, unit = len(tasks) - len(missing), " crawls"
            with Progress[_Task](None, subject.name, len(tasks), unit=unit, initial=done, bar=self._bar) as bar:
                for task, failure in in_processes(work, missing, self._processes):
                    bar.update()
                    if failure is not None:
                        failed.append((task, failure))
        for task, failure in sorted(failed, key=lambda one: one[0].number):
            what = {"policy": task.entrant.name, "web": subject.name, "set": task.number, "error": failure}
            self._failures.setdefault(task.entrant.name, what)
        return [record for task in tasks if (record := self._saved.find(task.identity)) is not None]

    def _task(self, subject: Subject, entrant: Entrant, number: int) -> _Task:
        """Return a crawl, with all facts that decide its findings."""
        track = self._track
        identity = {
            "version": __version__,
            "code": code_digest(),
            "web": subject.name,
            "digest": subject.digest,
            "scorer": subject.options.scorer,
            "model": subject.rater.scorer.digest,
            "seeds": track.seeds,
            "set": number,
            "batch": track.batch,
            "policy": entrant.described(),
        }
        return _Task(entrant, number, identity)


def _written(results: Results, wanted: Wanted) -> Iterator[Part]:
    """Write all files of a contest; yield the results and their places."""
    out = wanted.out
    timed = [crawl for crawl in results.crawls if _SECONDS in crawl]
    times = [{name: crawl[name] for name in ("web", "policy", "set", _SECONDS)} for crawl in timed]
    measured = [{name: value for name, value in crawl.items() if name != _SECONDS} for crawl in results.crawls]
    results = replace(results, crawls=measured)
    files = {RESULTS: results_json(results), _TABLE: markdown_of(results)}
    if times:  # they are no part of what is compared, and not in the results
        files[_TIMES] = json.dumps(times) + "\n"
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with replacing(out / name) as file:
                file.write(text.encode())
    except OSError as error:
        raise InputError(f"{error.filename or out} cannot be written: {error.strerror}") from None
    write_report(report_of(results), out)
    if wanted.as_json:
        yield from facts(json.loads(files[RESULTS]))
        return
    yield from files[_TABLE].splitlines()
    yield f"Wrote {RESULTS}, {_TABLE} and the report to {out}: open {out / 'report.html'}"

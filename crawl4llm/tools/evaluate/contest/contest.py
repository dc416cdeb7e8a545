"""``scrapy evaluate --contest``: from the command's arguments to the files of a contest."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import given_path
from crawl4llm.base.run_folder import write_text
from crawl4llm.base.tables import Part, facts
from crawl4llm.base.terminal import wants_bar
from crawl4llm.base.version import __version__
from crawl4llm.base.whole_files import check_free
from crawl4llm.options import read_options
from crawl4llm.tools._learnt import read_results as read_learnt
from crawl4llm.tools.evaluate.contest.crawling import MARKS, crawl
from crawl4llm.tools.evaluate.contest.page import by_policy, markdown_of, report_of
from crawl4llm.tools.evaluate.contest.results import LEARNT, Results, read_results, results_json
from crawl4llm.tools.evaluate.contest.running import CRAWLS, SavedCrawls, code_digest, in_processes
from crawl4llm.tools.evaluate.contest.subject import Subject, opened
from crawl4llm.tools.evaluate.contest.track import REPORTING, SMALL, Entrant, Track, read_entrants, read_track
from crawl4llm.tools.evaluate.ranking import MOST_PAIRS
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
    """All facts that decide its findings."""


def hold(settings: BaseSettings, wanted: Wanted) -> Iterator[Part]:
    """Hold a contest, or go on with it, and write its results; yield lines about it.

    Raises InputError; if policies failed, after writing the results of the others.
    """
    learnt = None if wanted.trained is None else by_policy(read_learnt(wanted.trained))
    results = read_results(given_path(wanted.track))
    if results is not None or not (wanted.out / CRAWLS).is_dir():
        check_free(wanted.out)
    if results is None:
        results = _crawled(settings, wanted)
    if learnt is not None:
        results = replace(results, about={**results.about, LEARNT: learnt})
    yield from _written(results, wanted)
    if results.failures:
        failure = results.failures[0]
        policy, web, number = (failure[name] for name in ("policy", "web", "set"))
        more = f" ({len(results.failures)} policies failed)" if len(results.failures) > 1 else ""
        raise InputError(f"policy {policy} failed on {web}, seed set {number}: {failure['error']}{more}")


def _crawled(settings: BaseSettings, wanted: Wanted) -> Results:
    """Do the missing crawls, web by web; return the results of all."""
    track = read_track(wanted.track, wanted.webs)
    if len(track.webs) * track.seed_sets > MOST_PAIRS:
        raise InputError(
            f"track {track.name} has {len(track.webs)} webs with {track.seed_sets} sets of seeds each; a contest "
            f"takes at most {MOST_PAIRS} in all"
        )
    entrants = read_entrants(wanted.policies, settings)
    webs, crawls = list[dict[str, Any]](), list[dict[str, Any]]()
    failures: dict[str, dict[str, Any]] = {}
    for source in track.webs:
        with opened(source, track, wanted.half, settings) as subject:
            webs.append(subject.described())
            tasks = _tasks(subject, track, entrants)
            saved = SavedCrawls(wanted.out)
            for task, failure in _run(subject, track, tasks, saved, settings):
                what = {"policy": task.entrant.name, "web": subject.name, "set": task.number, "error": failure}
                failures.setdefault(task.entrant.name, what)
            crawls += [record for task in tasks if (record := saved.find(task.identity)) is not None]
    about = {
        "version": __version__,
        "code": f"sha256:{code_digest()}",
        "track": track.name,
        "half": wanted.half,
        "seed_sets": track.seed_sets,
        "seeds": track.seeds,
        "batch": track.batch,
        "marks": list(MARKS),
    }
    in_order = [failures[entrant.name] for entrant in entrants if entrant.name in failures]
    return Results(about, webs, list(map(asdict, entrants)), crawls, in_order)


def _tasks(subject: Subject, track: Track, entrants: Sequence[Entrant]) -> list[_Task]:
    """Return the crawls of a web: one by each policy from each set of seeds."""
    shared = {
        "version": __version__,
        "code": code_digest(),
        "web": subject.name,
        "digest": subject.digest,
        "scorer": subject.options.scorer,
        "model": subject.rater.scorer.digest,
        "seeds": track.seeds,
        "batch": track.batch,
    }
    return [
        _Task(entrant, number, {**shared, "set": number, "policy": asdict(entrant)})
        for entrant in entrants
        for number in range(track.seed_sets)
    ]


def _run(
    subject: Subject, track: Track, tasks: Sequence[_Task], saved: SavedCrawls, settings: BaseSettings
) -> list[tuple[_Task, str]]:
    """Do the crawls that are not saved; return those that failed, by the sets of seeds, and why."""
    missing = [task for task in tasks if saved.find(task.identity) is None]
    options, failed = read_options(settings), list[tuple[_Task, str]]()
    with tempfile.TemporaryDirectory() as folder:
        files = subject.files_for({task.entrant.url_policy for task in missing}, Path(folder))

        def work(task: _Task) -> None:
            saved.save(task.identity, crawl(subject, task.entrant, track, task.number, files))

        done, bar = len(tasks) - len(missing), wants_bar(options.progress_bar)
        with Progress[_Task](None, subject.name, len(tasks), unit=" crawls", initial=done, bar=bar) as progress:
            for task, failure in in_processes(work, missing, max(options.workers, 1)):
                progress.update()
                if failure is not None:
                    failed.append((task, failure))
    return sorted(failed, key=lambda one: one[0].number)


def _written(results: Results, wanted: Wanted) -> Iterator[Part]:
    """Write all files of a contest; yield the results and their places."""
    out = wanted.out
    times = [
        {name: crawl[name] for name in ("web", "policy", "set", _SECONDS)}
        for crawl in results.crawls
        if _SECONDS in crawl
    ]
    measured = [{name: value for name, value in crawl.items() if name != _SECONDS} for crawl in results.crawls]
    results = replace(results, crawls=measured)
    files = {RESULTS: results_json(results), _TABLE: markdown_of(results)}
    if times:  # they are no part of what is compared, and not in the results
        files[_TIMES] = json.dumps(times) + "\n"
    with as_input_error(f"{out} cannot be written"):
        out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        write_text(out / name, text)
    write_report(report_of(results), out)
    if wanted.as_json:
        yield from facts(json.loads(files[RESULTS]))
        return
    yield from files[_TABLE].splitlines()
    yield f"Wrote {RESULTS}, {_TABLE} and the report to {out}: open {out / 'report.html'}"

"""``scrapy evaluate --contest``: from the command's arguments to the files of a contest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path
from crawl4llm.base.tables import Part, facts
from crawl4llm.base.version import __version__
from crawl4llm.base.whole_files import check_free
from crawl4llm.options import read_options
from crawl4llm.tools.evaluate.contest.crawling import MARKS, code_digest, do_missing, jobs_of, read_entrants
from crawl4llm.tools.evaluate.contest.results import Results, read_results, write_results
from crawl4llm.tools.evaluate.contest.track import REPORTING, SMALL, opened, read_track
from crawl4llm.tools.evaluate.ranking import MOST_PAIRS

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

CRAWLS: Final = "crawls"
"""The folder of saved crawls."""


@dataclass(frozen=True)
class Wanted:
    """The arguments of ``scrapy evaluate --contest``."""

    out: Path
    track: str = SMALL.name
    """A track's name, the file of one, or a file of results, whose report is made again."""
    webs: Sequence[str] = ()
    """Paths of corpora that take the place of the track's webs."""
    policies: Sequence[str] = ()
    """By name, file or dotted path; none: the project's own."""
    half: str = REPORTING
    as_json: bool = False
    """True to print the results themselves."""


def hold(settings: BaseSettings, wanted: Wanted) -> Iterator[Part]:
    """Hold a contest, or go on with it, and write its results; yield lines about it.

    Raises InputError; if policies failed, after writing the results of the others.
    """
    results = read_results(given_path(wanted.track))
    if results is not None or not (wanted.out / CRAWLS).is_dir():
        check_free(wanted.out)
    if results is not None and (wanted.webs or wanted.policies or wanted.half != REPORTING):
        raise InputError(
            f"--contest {wanted.track} holds results, whose report is made again as they are; leave out --contest-web, "
            "--policies and --half, or give the track"
        )
    if results is None:
        results = _crawled(settings, wanted)
    files = write_results(results, wanted.out)
    if wanted.as_json:
        yield from facts(json.loads(files["contest.json"]))
    else:
        yield from files["contest.md"].splitlines()
        yield f"Wrote {', '.join(files)} and the report to {wanted.out}: open {wanted.out / 'report.html'}"
    if results.failures:
        failure = results.failures[0]
        where = f"{failure['web']}, seed set {failure['set']}"
        more = f" ({len(results.failures)} policies failed)" if len(results.failures) > 1 else ""
        raise InputError(f"policy {failure['policy']} failed on {where}: {failure['error']}{more}")


def _crawled(settings: BaseSettings, wanted: Wanted) -> Results:
    """Do the missing crawls, web by web; return the results of all."""
    track = read_track(wanted.track, wanted.webs)
    if len(track.webs) * track.seed_sets > MOST_PAIRS:
        raise InputError(
            f"track {track.name} has {len(track.webs)} webs with {track.seed_sets} sets of seeds each; a contest "
            f"takes at most {MOST_PAIRS} in all"
        )
    entrants, options = read_entrants(wanted.policies, settings), read_options(settings)
    webs, crawls = list[dict[str, Any]](), list[dict[str, Any]]()
    failures: dict[str, dict[str, Any]] = {}
    for source in track.webs:
        with opened(source, track, wanted.half, settings) as subject:
            webs.append(subject.described())
            jobs = jobs_of(subject, track, entrants, wanted.out / CRAWLS)
            for job, failure in do_missing(subject, track, jobs, options):
                what = {"policy": job.entrant.name, "web": subject.name, "set": job.number, "error": failure}
                failures.setdefault(job.entrant.name, what)
            crawls += filter(None, (job.find() for job in jobs))
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

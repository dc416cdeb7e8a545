"""The summary of a crawl, which is printed at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from scrapy.settings import BaseSettings

from crawl4llm.base.command_lines import command, given_settings, merge_command
from crawl4llm.base.crawl_log import FAILURES, NAME as CRAWL_LOG, read_log
from crawl4llm.base.errors import CorruptRecord, InputError, NoHtml
from crawl4llm.base.reasons import ERROR, KILLED, KNOWN_URL, PURPOSES, TIMEOUT
from crawl4llm.base.run_folder import LIVE, SEEDS, SETTINGS, STATS, read_json
from crawl4llm.base.stats import PREFIX
from crawl4llm.base.terminal import harmless
from crawl4llm.crawl import FRONTIER_EMPTY, LIMITS, MAX_PAGES, ONLY_PARKED, UNANSWERED, Driven, is_done
from crawl4llm.engine.progress import in_short
from crawl4llm.options import Options
from crawl4llm.parts import ENDS

_REASONS = {
    MAX_PAGES: "all that were asked for",
    FRONTIER_EMPTY: "the frontier is empty: the seeds lead no further",
    ONLY_PARKED: "only documents of parked owners remain",
    UNANSWERED: "only documents of sites that never answered remain",
    **{reason: f"the limit {reason.upper()}" for reason in LIMITS},
    "shutdown": "interrupted",
}
_SAME = ("corpus_digest", "model_digest", "label", "text", "extractor", "seeds_digest", "scope")
"""Fields that two runs must share before their mean influence is compared."""
_FEWEST_ASKED = 20
_TO_CHECK = {
    CorruptRecord.reason: "CORPUS",
    NoHtml.reason: "SIMULATION_TEXT: `corpus` scores the text that CORPUS holds",
    TIMEOUT: "the pages, and in a live crawl the network and DOWNLOAD_TIMEOUT",
    KILLED: "the memory of the machine, and whether fewer SCORING_WORKERS do",
    ERROR: "errors.log in the output, SCORER and TEXT_EXTRACTOR",
}
"""Reasons that point to a common cause if most documents fail for them, with the settings to check."""
_SCORING = ("scorer", "scorer_model", "scorer_label", "text_extractor")
"""Settings that decide the score of a page."""
Again = Callable[..., str]
"""Returns the command that begins a crawl again, with settings given by name."""
_ANEW: Again = partial(command, "crawl", "influence")
_NO_COSTS: Mapping[str, float] = {}


def opening(crawl: Driven, seeds: int, output: Path) -> str:
    """Return one line on the crawl that is about to start."""
    verb, wanted = "Crawling", f"{crawl.options.crawl_max_pages:,} pages"
    if crawl.crawled:
        verb, wanted = "Going on with", f"{crawl.crawled:,} of {wanted} so far"
    corpus = crawl.options.corpus or read_json(output / SETTINGS).get("corpus")
    return harmless(f"{verb} {corpus} by {crawl.policy.name}: {wanted}, {seeds:,} seeds, to {output}")


def summary(
    crawl: Driven, reason: str, output: Path, costs: Mapping[str, float] = _NO_COSTS, again: Again = _ANEW
) -> str:
    """Return the summary of a crawl that ended for ``reason`` and was written to ``output``; some lines of text.
    ``costs``: the cost of new quality documents, by keys of the stats; ``again``: gives the command that begins the
    crawl."""
    figures = crawl.statistics()
    if crawl.options.storage is not None:
        return _of_worker(crawl, reason, output, figures)
    known = int(figures.get(f"dropped/{KNOWN_URL}") or 0)
    why = _meaning(reason)
    if reason == FRONTIER_EMPTY and known:
        why = f"the frontier is empty: KNOWN_URLS has {known:,} of the documents that it led to"
        if known == len(crawl.visited) - crawl.seeds:
            why = f"the frontier is empty: KNOWN_URLS has all {known:,} documents that the seeds lead to"
    comparisons = [f"    {comparison}" for comparison in _comparisons(crawl, output)]
    lines = [
        f"Crawled {crawl.crawled:,} of {crawl.options.crawl_max_pages:,} pages by {crawl.policy.name} ({why})",
        f"  mean influence   {in_short(crawl.counters.mean_influence)}",
        *comparisons,
        f"  visited          {len(crawl.visited):,} documents from {crawl.seeds:,} seeds",
        f"  fetched          {_fetched(figures)}",
        *(line for of_part in crawl.parts.having("lines") for line in of_part({**figures, **costs})),
    ]
    if seconds := figures.get("simulation/seconds"):
        lines.append(f"  virtual time     {seconds:,.1f} s, {crawl.crawled / seconds:,.2f} pages a second")
    tallies = {outcome: _tally(figures, outcome) for outcome in ("failed", "dropped", "redirected")}
    lines += [f"  {outcome:<17}{tally}" for outcome, tally in tallies.items() if tally]
    lines.append(f"  documents        {crawl.balance}")
    if parked := figures.get("owners/parked"):
        documents = f"{crawl.owners.documents.parked if crawl.owners else 0:,} documents of {int(parked):,} owners"
        lines.append(f"  parked           {documents}, whose robots.txt ask for more than CRAWL_DELAY_CAP")
    if waiting := figures.get("parked/unanswered"):
        lines.append(f"  unanswered       {int(waiting):,} documents, whose sites have not answered so far")
    archive = ", warc/" if crawl.options.warc_enabled else ""
    lines.append(f"  output           {output}: crawl.jsonl{archive}, settings.json, stats.json")
    lines += _next(crawl, reason, output, again, compared=bool(comparisons))
    return "\n".join(lines)


def _meaning(reason: str) -> str:
    return _REASONS.get(reason) or ENDS.get(reason, reason)


def _next(crawl: Driven, reason: str, output: Path, again: Again, *, compared: bool) -> Iterator[str]:
    """Yield the next steps, if there are any."""
    if crawl.lasting and not (is_done(reason) or reason == crawl.finished):
        greater = ", with a greater CRAWL_DELAY_CAP for the parked owners too" if reason == ONLY_PARKED else ""
        yield f"Next: the same command resumes it{greater}"
    elif crawl.crawled and read_json(output / SETTINGS).get("corpus") == LIVE:
        yield f"Next: replay it with another policy:  {_replay(crawl.options, output)}"
    elif crawl.crawled and not compared:
        baseline = "random" if crawl.policy.name == "influence" else "influence"
        yield f"Next: compare with a policy:  {again(URL_POLICY=baseline)}"
    elif crawl.crawled:
        first = next(read_log(output / CRAWL_LOG))["id"]
        yield f"Next: look at a page:  {command('explain', first, '--run', output)}"


def _replay(options: Options, output: Path) -> str:
    """Return the command that replays the archive of a live crawl, with the same scores."""
    defaults = Options()
    scoring = {name: getattr(options, name) for name in _SCORING if getattr(options, name) != getattr(defaults, name)}
    given = {name.upper(): value for name, value in scoring.items() if value is not None} | dict(options.own or {})
    settings = {"SIMULATION_TEXT": "extracted", **given, "URL_POLICY": "influence"}
    return command("simulate", output, "--seeds", output / SEEDS, simulation=True, **settings)


def begun_again(settings: BaseSettings, seeds: str | None) -> Again:
    """Return a function that gives the command to begin a crawl again, with other settings and into another folder."""
    words = ["crawl", "influence", *(["-a", f"seeds={seeds}"] if seeds is not None else [])]
    return partial(command, *words, **given_settings(settings))


def _of_worker(crawl: Driven, reason: str, output: Path, figures: Mapping[str, float | None]) -> str:
    """Return the summary of a worker's part in a cluster crawl."""
    storage, done = crawl.options.storage, is_done(reason)
    pages = f"{crawl.crawled:,} of {crawl.options.crawl_max_pages:,} pages"
    lines = [
        f"Crawled {pages} by {crawl.policy.name}, all workers together ({_meaning(reason)})",
        f"  this worker      {int(figures.get('pages/crawled') or 0):,} pages",
        f"  output           {output}: settings.json, stats.json",
        f"Next: {merge_command(str(storage))}" if done else "Next: the same command resumes it",
    ]
    return "\n".join(lines)


def _fetched(figures: Mapping[str, float | None]) -> str:
    """Return the counts of a simulation's look-ups, or of a live crawl's requests, sent and not sent."""
    fetched = int(figures.get("pages/fetched") or 0)
    sent = _by_reason(figures, "requests")
    if not (sent or _by_reason(figures, "unsent")):
        return f"{fetched:,} documents"
    others = [f"{sent[purpose]:,} for {purpose}" for purpose in PURPOSES[3:] if purpose in sent]
    unsent = _tally(figures, "unsent", "not sent")
    return "; ".join([", ".join([f"{fetched:,} requests for documents", *others]), *filter(None, [unsent])])


def _by_reason(figures: Mapping[str, float | None], outcome: str) -> dict[str, int]:
    return {key.partition("/")[2]: int(count or 0) for key, count in figures.items() if key.startswith(f"{outcome}/")}


def _tally(figures: Mapping[str, float | None], outcome: str, what: str = "documents") -> str:
    counts = _by_reason(figures, outcome)
    listed = ", ".join(f"{reason} {count:,}" for reason, count in sorted(counts.items()))
    return f"{sum(counts.values()):,} {what} ({listed})" if counts else ""


def mostly_failed(crawl: Driven, output: Path) -> str | None:
    """Say what to check if more than half of the requested documents failed for a reason with a common cause.

    None otherwise, if fewer than 20 were requested, and for a live crawl that has archived a page. Requested are the
    pages crawled and the documents that failed for any reason; for a policy that looks ahead, all that it scored.
    """
    figures = crawl.statistics()
    failed = _by_reason(figures, "failed")
    faults = {reason: failed[reason] for reason in _TO_CHECK if reason in failed}
    asked = int(figures.get("pages/fetched") or 0) if crawl.policy.looks_ahead else crawl.crawled + sum(failed.values())
    live = read_json(output / SETTINGS).get("corpus") == LIVE
    if asked < _FEWEST_ASKED or 2 * sum(faults.values()) <= asked or (live and crawl.crawled):
        return None
    reason = max(faults, key=lambda fault: faults[fault])
    return (
        f"{sum(faults.values()):,} of {asked:,} documents asked for failed, {faults[reason]:,} for {reason}"
        f"{_example(output, reason)}: check {_TO_CHECK[reason]}"
    )


def _example(output: Path, reason: str) -> str:
    """Name the first document that failed for a reason; nothing if the log of failures names none."""
    with suppress(InputError, LookupError, TypeError):
        for line in read_log(output / FAILURES):
            if line["reason"] == reason:
                return harmless(f" ({line['id']}, for example)")
    return ""


def _comparisons(crawl: Driven, output: Path) -> Iterator[str]:
    """Yield comparisons with other policies from the same seeds in the same corpus, by the newest run of each beside
    this one.

    Both are compared up to the number of pages of the shorter run. If their pages are the same, nothing is said: they
    are only the seeds, which are the first batch of any policy, or all pages that the seeds lead to.
    """
    settings = read_json(output / SETTINGS)
    others = sorted((path for path in output.parent.iterdir() if path.is_dir() and path != output), reverse=True)
    seen = {crawl.policy.name}
    for other in others:
        try:
            theirs, crawled = read_json(other / SETTINGS), read_json(other / STATS).get(f"{PREFIX}pages/crawled")
        except InputError:
            continue  # a folder that somebody else made is no reason to end without a summary
        policy = str(theirs.get("policy"))
        if policy in seen or not isinstance(crawled, int) or any(theirs.get(key) != settings.get(key) for key in _SAME):
            continue
        seen.add(policy)
        pages = min(crawl.crawled, crawled)
        ours, mean = _first_pages(output, pages), _first_pages(other, pages)
        if ours and mean and mean.influence and ours.pages != mean.pages:
            at = f"{pages:,} pages" if pages == crawl.crawled else f"at {pages:,} pages"
            factor = ours.influence / mean.influence
            yield harmless(f"{factor:.2f} times that of {policy} ({mean.influence:.3f}, {at}, {other})")


class _FirstPages(NamedTuple):
    """Figures by which two runs are compared."""

    influence: float  # their mean
    pages: int  # a sum of hashes of their keys: the same, in this process, for the same pages in any order


def _first_pages(run: Path, count: int) -> _FirstPages | None:
    """Read the first pages of a run; None if its log has fewer, or no scores, or is damaged."""
    found = total = scored = 0
    influence = 0.0
    try:
        for line in islice(read_log(run / CRAWL_LOG), count):
            found += 1
            total += hash(line["id"])
            if line["influence"] is not None:
                influence += float(line["influence"])
                scored += 1
    except (InputError, LookupError, TypeError, ValueError):
        return None
    return _FirstPages(influence / scored, total) if scored and found == count else None

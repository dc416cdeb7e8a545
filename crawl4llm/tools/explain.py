"""``scrapy explain``: a page's text, score and links, and why a crawl queued, took or dropped it, or failed."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawl4llm.base import crawl_log
from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.input_files import read_json
from crawl4llm.base.pages import Corpus
from crawl4llm.base.run_folder import LIVE, SETTINGS
from crawl4llm.base.within import require_within
from crawl4llm.crawl.seeds import find_document, not_held
from crawl4llm.engine.past_runs import take_over
from crawl4llm.scoring.rating import PageRater, Task, indegree, influence
from simulate.web import open_rater

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_SCORES: dict[str, Task] = {"influence": influence, "indegree": indegree}
"""Scores of policies whose score of a page can be computed without the crawl."""


def explain(settings: BaseSettings, given: str, run: str | None) -> Iterator[str]:
    """Yield lines about the document with a key or URL; of a run, if its output directory is given.

    Settings on the command line count, then the run's, then the project's. Where a run was of no corpus, its archive is
    the corpus. Raises InputError and PageError.
    """
    facts = _settings_of(Path(run)) if run else {}
    take_over(settings, facts, run)
    if run and facts.get("corpus") in (None, LIVE):
        settings.set("CORPUS", run, priority="spider")
        settings.set("SIMULATION_TEXT", "extracted", priority="spider")
    corpus, rater = open_rater(settings)
    key = find_document(corpus, given)
    yield from _lines(corpus, rater, key, Path(run) if run else None, facts)


def _lines(corpus: Corpus, rater: PageRater, key: str, run: Path | None, facts: dict[str, Any]) -> Iterator[str]:
    try:
        page = corpus.page(key)
    except PageError as error:
        failure = _failure(run, key) if run is not None else None
        if run is None or failure is None:
            raise (error if key in corpus else not_held(corpus, key)) from None
        yield f"id         {key}"
        yield f"page       none: {error}"
        yield f"\nrun        {run}: policy {facts['policy']}"
        yield from _ended(failure)
        return
    yield f"id         {key}"
    yield f"url        {page.url}"
    try:
        text = rater.text(key)
        rated = influence(rater, key)
        yield f"influence  {rated.score:.6f}{' (it has no text)' if rated.reason else ''}"
        origin = "the corpus's clean text" if rater.extractor is None else f"extracted by {rater.extractor}"
        yield f"text       {len(text):,} characters, {origin}"
    except PageError as error:
        text = ""
        yield f"influence  none: {error.reason} ({error})"
    links = page.outlinks or []
    yield f"outlinks   {len(links)}, {sum(link.key in corpus for link in links)} of them held by the corpus"
    inlinks = {link.key for link in corpus.inlinks(key) if link.key} if _holds(corpus, "inlinks") else None
    yield f"inlinks    {'-' if inlinks is None else len(inlinks)}"
    if run is not None:
        yield ""
        yield from _fate(corpus, rater, key, run, facts, inlinks)
    yield f"\n{text.strip()}"


def _fate(
    corpus: Corpus, rater: PageRater, key: str, run: Path, facts: dict[str, Any], inlinks: Container[str] | None
) -> Iterator[str]:
    """Yield lines about the document's way through a run."""
    own, crawled, last = None, [], None
    log = run / crawl_log.NAME
    for last in crawl_log.read_log(log):
        if last.get("id") == key:
            own = last
        elif inlinks is None or str(last.get("id")) in inlinks:
            crawled.append(last)
    _require_whole(log, crawl_log.CrawlLine, own, last)
    yield f"run        {run}: policy {facts['policy']}, {last['order'] + 1 if last else 0:,} pages"
    if own is not None:
        iteration = "" if own["iteration"] is None else f", iteration {own['iteration']}"
        priority = "none" if own["priority"] is None else f"{own['priority']:.6f}"
        yield f"crawled    order {own['order']}{iteration}, priority {priority}"
        yield f"found      {_origin_of(own)}"
        return
    if failure := _failure(run, key):
        yield from _ended(failure)
        return
    first = next((li for li in crawled if any(link.key == key for link in corpus.outlinks(str(li.get("id"))))), None)
    _require_whole(log, crawl_log.CrawlLine, first)
    if first is None or last is None:
        yield "not found  no crawled page links to it, and it was no seed that was crawled"
    elif first["iteration"] is not None and first["iteration"] == last["iteration"]:
        yield f"not found  only pages of the last iteration link to it, such as {first['id']}:"
        yield "           the links of those were not followed any more"
    else:
        yield f"queued     found at page {first['order']}, {first['id']} ({first['url']})"
        score = _SCORES.get(str(facts["policy"]))
        waits = f"its score is {score(rater, key).score:.6f}; " if score else ""
        yield f"not taken  {waits}the last page that was crawled had priority {last['priority']:.6f}"


def _failure(run: Path, key: str) -> dict[str, Any] | None:
    """Return the line of a document that ended without a page in a run; None where there is none."""
    log = run / crawl_log.FAILURES
    failure = next((line for line in crawl_log.read_log(log) if line.get("id") == key), None)
    _require_whole(log, crawl_log.FailureLine, failure)
    return failure


def _require_whole(log: Path, kind: type, *lines: Mapping[str, Any] | None) -> None:
    for line in lines:
        if line is not None and not crawl_log.is_whole(line, kind):
            raise InputError(f"{log} is damaged: its line of {line.get('id')!r:.100} lacks a value or has an odd one")


def _ended(failure: dict[str, Any]) -> Iterator[str]:
    led = f"; it led to {failure['target']}" if "target" in failure else ""
    yield f"{failure['outcome']:<11}{failure['reason']}{led}"
    yield f"found      {_origin_of(failure)}"


def _origin_of(line: dict[str, Any]) -> str:
    return "it is a seed" if line["parent"] is None else f"on {line['parent']}, {line['depth']} links from a seed"


def _holds(corpus: Corpus, part: str) -> bool:
    try:
        corpus.require(part)
    except InputError:
        return False
    return True


def _settings_of(run: Path) -> dict[str, Any]:
    require_within(run, run / SETTINGS)
    try:
        facts: Any = read_json(run / SETTINGS)
    except OSError as error:
        why = error.strerror
        raise InputError(f"--run {run}: {SETTINGS} cannot be read ({why}); give a crawl's OUTPUT_DIR") from None
    except ValueError:
        facts = None
    if not isinstance(facts, dict) or "policy" not in facts:
        raise InputError(f"--run {run}: {SETTINGS} is damaged")
    return facts

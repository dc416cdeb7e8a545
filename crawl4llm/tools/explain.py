"""``scrapy explain``: a page's text, score and links, and why a crawl queued, took or dropped it, or failed.

Of a live crawl also by which rule, and the record of the archive that says so.
"""

from __future__ import annotations

import tempfile
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawl4llm.base import crawl_log
from crawl4llm.base.domains import owner_of
from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.input_files import open_input
from crawl4llm.base.pages import Corpus, PageRecord
from crawl4llm.base.reasons import KNOWN_PAGE
from crawl4llm.base.run_folder import LIVE, SETTINGS, WARC, read_json
from crawl4llm.base.tables import Fact, Line, Part
from crawl4llm.base.urls import normalise_url, site_of
from crawl4llm.base.within import require_within, within
from crawl4llm.crawl import StoredCrawl, find_document, not_held
from crawl4llm.engine import take_over
from crawl4llm.frontier import Entry
from crawl4llm.parts import KnownLinks
from crawl4llm.scoring import PageRater, Task, indegree, influence
from crawl4llm.tools.opened_run import run_folder
from crawl4llm.warc import (
    DATE,
    INDEX_NAME,
    OPEN_SUFFIX,
    Entry as IndexEntry,
    UnreadableFile,
    WarcReader,
    cdxj,
    field_name,
    is_utc_date,
    read_stored,
    timestamp,
)
from simulate import open_rater

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_RECORD_ID = field_name("WARC-Record-ID")
_LARGEST_PAGE = 16 << 20
"""Bytes of an archive from a page's record on in which the metadata of it is looked for."""
_SCORES: dict[str, Task] = {"influence": influence, "indegree": indegree}
"""Scores of policies whose score of a page can be computed without the crawl."""


def explain(settings: BaseSettings, given: str, run: str | None) -> Iterator[Part]:
    """Yield lines about the document with a key or URL; of a run, if its output directory is given.

    Settings on the command line count, then the run's, then the project's. If a run had no corpus, its archive is the
    corpus. Raises InputError and PageError.
    """
    run = str(run_folder(run, settings)) if run else None
    facts = _settings_of(Path(run)) if run else {}
    take_over(settings, facts, run)
    of_no_corpus = bool(run) and facts.get("corpus") in (None, LIVE)
    if of_no_corpus:
        settings.set("CORPUS", run, priority="spider")
        settings.set("SIMULATION_TEXT", "extracted", priority="spider")
    corpus, rater = open_rater(settings)
    try:
        key = find_document(corpus, given)
    except PageError:
        if not of_no_corpus or "://" not in given:
            raise
        key = normalise_url(given)  # the archive has only what was fetched
    if run and of_no_corpus and key not in corpus:
        yield from _not_fetched(settings, key, Path(run), facts)
    else:
        yield from _lines(corpus, rater, key, Path(run) if run else None, facts)


def _not_fetched(settings: BaseSettings, key: str, run: Path, facts: dict[str, Any]) -> Iterator[Part]:
    """Yield lines about a document of which a crawl has no page."""
    yield Fact("id", key)
    yield from _run(run, facts)
    if failure := _failure(run, key):
        yield from _ended(failure, run, facts)
    elif jobdir := settings.get("JOBDIR"):
        yield from _state(Path(jobdir), key)
    else:
        told = "it was not fetched and has not ended; -s JOBDIR=DIR shows whether it is queued or was never seen"
        yield Fact("not known", told)


def _run(run: Path, facts: dict[str, Any], pages: int | None = None) -> Iterator[Part]:
    yield ""
    yield Fact("policy", facts["policy"], "")
    yield Fact("pages", pages, "")
    yield Fact("run", run, f"{run}: policy {facts['policy']}{'' if pages is None else f', {pages:,} pages'}")


def _state(jobdir: Path, key: str) -> Iterator[Part]:
    """Yield lines about a document that has not ended, as the last commit has it."""
    with StoredCrawl(jobdir) as crawl:
        leased = next((lease.entry for lease in crawl.frontier.leases() if lease.entry.key == key), None)
        entry = leased or next((entry for entry in crawl.frontier if entry.key == key), None)
        if entry is None:
            waiting = crawl.set_aside(owner_of(key) or None)
            if (found := next((one for one in waiting if one[1].key == key), None)) is not None:
                yield from _set_aside(*found)
                return
            seen = key in crawl.visited
            yield Fact("not found", "a redirect led to it, and from it" if seen else "it was never seen")
            return
        owners = crawl.frontier.owners if crawl.frontier.by_owners else None
        is_parked = owners is not None and owners.is_parked(owner_of(entry.url or entry.key))
        state = "leased" if leased else "parked" if is_parked else "queued"
        told = f"its score is {entry.score:.6f}; it was tried {entry.attempts} times"
        yield Fact(state, {"score": entry.score, "attempts": entry.attempts}, told)
        yield _found(entry.parent, entry.depth)


def _set_aside(scope: str, entry: Entry) -> Iterator[Part]:
    """Yield lines about a document that waits for a budget."""
    owner = owner_of(entry.url or entry.key)
    place = {"owner": owner, "scope": scope, "score": entry.score, "attempts": entry.attempts}
    whose = f"the owner {owner}" if scope == owner else f"the prefix {scope} of {owner}"
    yield Fact("set aside", place, f"{whose} has no budget left (URL_BUDGET); its score is {entry.score:.6f}")
    yield _found(entry.parent, entry.depth)


def _lines(corpus: Corpus, rater: PageRater, key: str, run: Path | None, facts: dict[str, Any]) -> Iterator[Part]:
    try:
        page = corpus.page(key)
    except PageError as error:
        failure = _failure(run, key) if run is not None else None
        if run is None or failure is None:
            raise (error if key in corpus else not_held(corpus, key)) from None
        yield Fact("id", key)
        yield Fact("page", None, f"none: {error}")
        yield from _run(run, facts)
        yield from _ended(failure, run, facts)
        return
    yield Fact("id", key)
    yield Fact("url", page.url)
    try:
        text = rater.text(key)
        rated = influence(rater, key)
        yield Fact("influence", rated.score, f"{rated.score:.6f}{' (it has no text)' if rated.reason else ''}")
        origin = "the corpus's clean text" if rater.extractor is None else f"extracted by {rater.extractor}"
        yield Fact("text", text, f"{len(text):,} characters, {origin}")
    except PageError as error:
        text = ""
        yield Fact("influence", None, f"none: {error.reason} ({error})")
    links = page.outlinks or []
    held = sum(link.key in corpus for link in links)
    yield Fact("outlinks", {"all": len(links), "held": held}, f"{len(links):,}, {held:,} of them held by the corpus")
    inlinks = {link.key for link in corpus.inlinks(key) if link.key} if _holds(corpus, "inlinks") else None
    yield Fact("inlinks", None if inlinks is None else len(inlinks))
    if run is not None:
        yield from _fate(corpus, rater, key, run, facts, inlinks)
    yield Line(f"\n{text.strip()}")


def _fate(
    corpus: Corpus, rater: PageRater, key: str, run: Path, facts: dict[str, Any], inlinks: Container[str] | None
) -> Iterator[Part]:
    """Yield lines about the document's way through a run."""
    own, crawled, last = None, [], None
    log = run / crawl_log.NAME
    for last in crawl_log.read_log(log):
        if last.get("id") == key:
            own = last
        elif inlinks is None or str(last.get("id")) in inlinks:
            crawled.append(last)
    _require_whole(log, crawl_log.CrawlLine, own, last)
    yield from _run(run, facts, last["order"] + 1 if last else 0)
    if own is not None:
        iteration = "" if own["iteration"] is None else f", iteration {own['iteration']}"
        place = {name: own[name] for name in ("order", "iteration", "priority")}
        yield Fact("crawled", place, f"order {own['order']:,}{iteration}, priority {_priority(own)}")
        yield from _lowered(own)
        yield _found(own["parent"], own["depth"])
        yield from _allowed(run / WARC, key)
        return
    if failure := _failure(run, key):
        yield from _ended(failure, run, facts)
        return
    first = next((li for li in crawled if any(link.key == key for link in corpus.outlinks(str(li.get("id"))))), None)
    _require_whole(log, crawl_log.CrawlLine, first)
    known = _known_parent(run, key, corpus, facts) if first is None else None
    if known is not None:
        place = {name: known[name] for name in ("id", "url")}
        yield Fact("queued", place, f"found on {known['id']} ({known['url']}), a known page; it was not taken")
    elif first is None or last is None:
        yield Fact("not found", "no crawled page links to it, and no crawled seed leads to it")
    elif first["iteration"] is not None and first["iteration"] == last["iteration"]:
        told = f"only pages of the last iteration link to it, such as {first['id']}"
        yield Fact("not found", f"{told}, whose links were not followed")
    else:
        place = {name: first[name] for name in ("order", "id", "url")}
        yield Fact("queued", place, f"found at page {first['order']:,}, {first['id']} ({first['url']})")
        score = _SCORES.get(str(facts["policy"]))
        waits = f"its score is {score(rater, key).score:.6f}; " if score else ""
        yield Fact("not taken", f"{waits}the last page that was crawled had priority {_priority(last)}")


def _priority(line: Mapping[str, Any]) -> str:
    return "none" if line["priority"] is None else f"{line['priority']:.6f}"


def _lowered(line: Mapping[str, Any]) -> Iterator[Part]:
    """Yield why the influence of a crawled page was lowered, if it was (LOWER_LEFT_OVERS)."""
    reason, before, after = (line.get(name) for name in ("left_overs", "lowered_from", "influence"))
    if isinstance(before, float) and isinstance(after, float):
        facts = {"reason": reason, "from": before, "to": after}
        yield Fact("lowered", facts, f"from {before:.6f} to {after:.6f}, as left-overs: {reason}")


def _failure(run: Path, key: str) -> dict[str, Any] | None:
    """Return the line of a document that ended without a page in a run, or None."""
    log = run / crawl_log.FAILURES
    failure = next((line for line in crawl_log.read_log(log) if line.get("id") == key), None)
    _require_whole(log, crawl_log.FailureLine, failure)
    return failure


def _require_whole(log: Path, kind: type, *lines: Mapping[str, Any] | None) -> None:
    for line in lines:
        if line is not None and not crawl_log.is_whole(line, kind):
            raise InputError(f"{log} is damaged: its line of {line.get('id')!r:.100} lacks a value or has an odd one")


def _ended(failure: dict[str, Any], run: Path, facts: dict[str, Any]) -> Iterator[Part]:
    led = f"; it led to {failure['target']}" if "target" in failure else ""
    yield Fact("target", failure.get("target"), "")
    yield Fact(str(failure["outcome"]), failure["reason"], f"{failure['reason']}{led}")
    yield _found(failure["parent"], failure["depth"])
    if "rule" in failure:
        yield Fact("rule", failure["rule"])
    if failure["reason"] == KNOWN_PAGE:
        yield from _known(str(failure["id"]), facts)
    if failure.get("digest") and failure.get("time"):
        url = str(failure.get("url") or failure["id"])
        yield from _said_by(run / WARC, str(failure["digest"]), str(failure["time"]), url)


def _known_parent(run: Path, key: str, corpus: Corpus, facts: dict[str, Any]) -> Mapping[str, Any] | None:
    """Return the line of the first known page with a link to a document; None if there is none, or the file of known
    links is not there any more."""
    for line in crawl_log.read_log(run / crawl_log.FAILURES):
        if line.get("reason") == KNOWN_PAGE:
            _require_whole(run / crawl_log.FAILURES, crawl_log.FailureLine, line)
            try:
                page = _known_page(str(line["id"]), facts)[0]
            except InputError:
                return None
            if page is not None and any(key == (link.key or corpus.resolve(link.url)) for link in page.outlinks or ()):
                return line
    return None


def _known_page(key: str, facts: dict[str, Any]) -> tuple[PageRecord | None, float | None]:
    """Return a known page and its score, as the file that the run's settings name has them now; None for the page if
    it has it no more. Raises InputError."""
    known = _known_links(Path(_known_path(facts)))
    number = known.find(key)
    return (None, None) if number is None else (known.page(number, key), known.score(number))


_known_links = cache(KnownLinks)
"""Opens a file once: all but its records is checked then."""


def _known_path(facts: dict[str, Any]) -> str:
    return str(facts.get("settings", {}).get("KNOWN_LINKS"))


def _known(key: str, facts: dict[str, Any]) -> Iterator[Part]:
    """Yield the links that a known page gave."""
    path = _known_path(facts)
    try:
        page, score = _known_page(key, facts)
    except InputError as error:
        yield Fact("known", None, f"its links were followed without a request; they cannot be shown: {error}")
        return
    if page is None:
        yield Fact("known", None, f"its links were followed without a request; KNOWN_LINKS {path} has it no more")
        return
    links = len(page.outlinks or ())
    told = f"{links:,} links" if page.follows else "no links, as it forbids to follow them"
    scored = "no score" if score is None else f"the score {score:.6f}"
    facts_of = {"links": links, "follows": page.follows, "influence": score}
    yield Fact("known", facts_of, f"nothing was requested: KNOWN_LINKS {path} has it, with {told} and {scored}")


def _said_by(warc: Path, digest: str, time: str, url: str) -> Iterator[Part]:
    """Yield lines about the record that a rule against a URL, or for it, was found in.

    The index has times to the second, and many sites give the same answer: the record itself has the whole time. Of
    several of one time that of the URL's own site is meant."""
    stamp = timestamp(time) if is_utc_date(time) else ""
    best: tuple[bool, IndexEntry, str] | None = None
    for entry in cdxj.read(warc / INDEX_NAME, redirects=True):
        if entry.digest == digest and entry.timestamp == stamp and (identifier := _record_of(warc, entry, time)):
            found = (site_of(entry.url) == site_of(url), entry, identifier)
            best = found if best is None or found[0] > best[0] else best
    if best is None:
        yield Fact("record", None, f"none in {warc} has {digest} of {time}")
        return
    _, entry, identifier = best
    yield Fact("said by", {"url": entry.url, "time": time}, f"{entry.url}, asked for at {time}")
    path = warc / entry.filename
    place = {"path": path, "offset": entry.offset, "digest": digest, "id": identifier}
    yield Fact("record", place, f"{path} at {entry.offset:,}, {identifier}, {digest}")


def _record_of(warc: Path, entry: IndexEntry, time: str) -> str | None:
    """Return the id of the record that an index leads to; None if its time is another, or it cannot be read."""
    within(warc, entry.filename, warc / INDEX_NAME)
    try:
        fields = read_stored(warc, entry.filename, entry.offset, entry.length).record.fields
    except PageError:
        return None
    return fields.text(_RECORD_ID) if fields.text(DATE) == time else None


def _allowed(warc: Path, key: str) -> Iterator[Part]:
    """Yield lines about the robots.txt that allowed a page; none if none was obeyed, or without an archive."""
    if not (warc / INDEX_NAME).exists():
        return
    entry = next((entry for entry in cdxj.read(warc / INDEX_NAME) if entry.id == key), None)
    if entry is None:
        return
    for place in _allowed_by(within(warc, entry.filename, warc / INDEX_NAME), entry.offset):
        digest, _, time = place.partition(" ")
        yield Fact("allowed", "by robots.txt")
        yield from _said_by(warc, digest, time, entry.url)


def _allowed_by(path: Path, offset: int) -> list[str]:
    """Return the robots.txt field in the metadata of the page at a place."""
    for name in (path, path.with_name(path.name + OPEN_SUFFIX)):
        with suppress(OSError, PageError, UnreadableFile), tempfile.TemporaryDirectory(prefix="crawl4llm-") as folder:
            part = Path(folder) / "part"
            with open_input(name) as file:
                file.seek(offset)
                part.write_bytes(file.read(_LARGEST_PAGE))
            reader = WarcReader(part)
            for at, length, frame in reader.stretches():
                if frame is not None and frame.record is not None and frame.record.kind == "metadata":
                    block = frame.record.block(reader.read(at, length)).decode("utf-8", "replace")
                    found = [line.partition(": ")[2] for line in block.splitlines() if line.startswith("robots: ")]
                    return found[0].split(", ") if found else []
    return []


def _found(parent: str | None, depth: int) -> Fact:
    told = "it is a seed" if parent is None else f"on {parent}, {depth} links from a seed"
    return Fact("found", {"parent": parent, "depth": depth}, told)


def _holds(corpus: Corpus, part: str) -> bool:
    try:
        corpus.require(part)
    except InputError:
        return False
    return True


def _settings_of(run: Path) -> dict[str, Any]:
    require_within(run, run / SETTINGS)
    facts = read_json(run / SETTINGS)
    if "policy" not in facts:
        raise InputError(f"--run {run}: {SETTINGS} is damaged, or missing: give a crawl's OUTPUT_DIR")
    return facts

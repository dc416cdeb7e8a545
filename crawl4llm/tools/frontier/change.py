"""``scrapy frontier JOBDIR``: ``--inject FILE`` adds seeds, ``--compact`` makes the store smaller and faster.

``--block DOMAIN`` and ``--unblock DOMAIN`` work also while the crawl runs, and on a storage.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.bars import Progress
from crawl4llm.base.domains import domain_to_purge
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.object_store import is_storage
from crawl4llm.base.pages import Corpus
from crawl4llm.base.run_folder import LIVE, SETTINGS, read_json
from crawl4llm.base.tables import Fact, Part, facts
from crawl4llm.crawl import (
    Control,
    JobDir,
    LiveCorpus,
    StoredCrawl,
    add_seeds,
    find_output,
    publish_blocked,
    read_seeds,
    set_blocked,
)
from crawl4llm.engine import take_over
from crawl4llm.frontier import put_in_place
from crawl4llm.options import read_options
from crawl4llm.tools._action import Action
from simulate import open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def corpus_of(crawl: StoredCrawl, settings: BaseSettings) -> Corpus:
    """Open the crawled corpus, or the live web. Raises InputError, also if the corpus has changed.

    Settings on the command line count, then those of the crawl's last run, then the project's.
    """
    output = crawl.output(settings)
    last_run = read_json(output / SETTINGS)
    if last_run.get("corpus") == LiveCorpus.name:
        return LiveCorpus()
    take_over(settings, last_run, output)
    corpus = open_corpus(settings)
    corpus.check()
    if corpus.identity() != crawl.job["digests"].get("corpus_digest"):
        raise InputError(
            f"CORPUS {settings['CORPUS']} is not the corpus of JOBDIR {crawl.path}; give that one: -s CORPUS=PATH"
        )
    return corpus


def _inject(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Store the seeds that were not visited; yield counts by kind."""
    jobdir, given = map(Path, opts.arguments)
    with StoredCrawl(jobdir, change=True) as crawl:
        with closing(corpus_of(crawl, settings)) as corpus:
            seeds = read_seeds(given, corpus)
        crawl.require_begun()
        waiting = set(crawl.state.seeds)
        not_waiting = [key for key in seeds.keys if key not in waiting]
        new = [key for key in not_waiting if key not in crawl.visited]
        if new:
            add_seeds(crawl.store, new)
            crawl.store.commit()
        counts = {
            "new": len(new),
            "visited": len(not_waiting) - len(new),
            "injected before": len(seeds.keys) - len(not_waiting),
            **{kind.rpartition("/")[2]: count for kind, count in seeds.counts.items() if kind != "seeds/given"},
        }
        yield from facts(counts)
        wanted = read_options(settings).crawl_max_pages
        if new and crawl.pages >= wanted:
            yield f"The crawl has all its pages: resume it with CRAWL_MAX_PAGES greater than {wanted}."


def _compact(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Merge the frontier, copy the store, put the copy in its place; yield the sizes before and after.

    Killed at any moment it leaves the store before or the one after, each with the same crawl.
    """
    with StoredCrawl(Path(opts.arguments[0]), change=True) as crawl:
        before = crawl.store_path.stat().st_size
        for _ in Progress(crawl.frontier.rewrite(lambda _entry: False), "Merging", unit=" pieces"):
            crawl.frontier.save()
            crawl.store.commit()
        copy = crawl.store_path.with_name(f"{crawl.store_path.name}.compact")
        try:
            with as_input_error(f"{copy} cannot be written"):
                copy.unlink(missing_ok=True)  # of an earlier attempt that was killed
                crawl.store.copy_to(copy)
                put_in_place(copy, crawl.store_path)
        finally:
            copy.unlink(missing_ok=True)
        after = crawl.store_path.stat().st_size
    yield Fact("before", before, f"{before / 1e6:,.1f} MB")
    yield Fact("after", after, f"{after / 1e6:,.1f} MB")


def _block(settings: BaseSettings, opts: argparse.Namespace, *, blocked: bool) -> Iterator[Part]:
    """Change the control file, and the lists for exports; yield the current state. The store is not opened."""
    given, name = Path(opts.arguments[0]), opts.arguments[1]
    domain = domain_to_purge(name.strip(), whole_suffix=opts.whole_suffix or not blocked)
    if is_storage(opts.arguments[0]):
        yield from _in_storage(opts.arguments[0], domain.name, blocked=blocked)
        return
    jobdir = JobDir(given, lock=False)
    assert jobdir.job is not None
    if jobdir.job["digests"].get("corpus_digest") != LIVE:
        raise InputError(f"JOBDIR {given} holds a simulation, which sends nothing; use --purge while it is paused")
    control, changed = set_blocked(given, domain.name, blocked=blocked)
    holder = jobdir.holder()
    when = "when the crawl goes on" if holder is None else f"process {holder}, which crawls, applies it within a second"
    yield from _told(domain.name, control, when if changed else None, blocked=blocked)
    publish_blocked(given, find_output(given, jobdir.job, settings.get("OUTPUT_DIR")))


def _in_storage(url: str, name: str, *, blocked: bool) -> Iterator[Part]:
    """Tell all workers of a crawl, even those that join later, the blocked domains; yield the current state."""
    # obstore is an extra
    from crawl4llm.cluster import Controls, History

    history = History(url)
    if history.crawl["facts"].get("corpus") != LIVE:
        raise InputError(f"STORAGE {url} holds a simulation, which sends nothing")
    controls = Controls(history.storage)
    changed = controls.set_blocked(name, blocked=blocked)
    when = "each worker applies it within CLUSTER_LEASE seconds, or sends nothing" if changed else None
    yield from _told(name, controls.control, when, blocked=blocked)


def _told(name: str, control: Control, when: str | None, *, blocked: bool) -> Iterator[Part]:
    """Yield the current state; ``when``: None if it is unchanged."""
    what = "blocked" if blocked else "not blocked"
    yield Fact("blocked", list(control.blocked), "")
    yield f"{name} is {what}{f': {when}' if when else ', as before'}; in all {len(control.blocked):,} domains"


INJECT = Action("add the seeds in a file to a paused crawl, which takes them up when resumed", _inject, "FILE")
COMPACT = Action("rewrite a paused crawl's store without free space", _compact)
BLOCK = Action(
    "block a domain and all below it: send it no more requests, and leave it out of exports; works while the crawl "
    "runs",
    partial(_block, blocked=True),
    "DOMAIN",
)
UNBLOCK = Action("undo --block for a domain", partial(_block, blocked=False), "DOMAIN")

"""``scrapy frontier JOBDIR|STORAGE``: ``--block DOMAIN`` and ``--unblock DOMAIN``, also while the crawl runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.domains import domain_to_purge
from crawl4llm.base.errors import InputError
from crawl4llm.base.object_store import is_storage
from crawl4llm.base.run_folder import LIVE
from crawl4llm.base.tables import Fact, Part
from crawl4llm.crawl import Control, JobDir, find_output, publish_blocked, set_blocked
from crawl4llm.tools._action import Action

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _run(settings: BaseSettings, opts: argparse.Namespace, *, blocked: bool) -> Iterator[Part]:
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


BLOCK = Action(
    "block a domain and all below it: send it no more requests, and leave it out of exports; works while the crawl "
    "runs",
    partial(_run, blocked=True),
    "DOMAIN",
)
UNBLOCK = Action("undo --block for a domain", partial(_run, blocked=False), "DOMAIN")

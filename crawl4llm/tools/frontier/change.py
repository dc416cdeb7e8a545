"""``scrapy frontier JOBDIR``: ``--inject FILE`` adds seeds, ``--compact`` makes the store smaller and faster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Corpus
from crawl4llm.base.run_folder import SETTINGS, read_json
from crawl4llm.base.tables import Fact, Part, facts
from crawl4llm.crawl import LiveCorpus, StoredCrawl, add_seeds, read_seeds
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
        for _ in tqdm(crawl.frontier.rewrite(lambda _entry: False), "Merging", unit=" pieces", disable=None):
            crawl.frontier.save()
            crawl.store.commit()
        copy = crawl.store_path.with_name(f"{crawl.store_path.name}.compact")
        try:
            copy.unlink(missing_ok=True)  # of an earlier attempt that was killed
            crawl.store.copy_to(copy)
            put_in_place(copy, crawl.store_path)
        except OSError as error:
            raise InputError(f"{copy} cannot be written: {error.strerror}") from None
        finally:
            copy.unlink(missing_ok=True)
        after = crawl.store_path.stat().st_size
    yield Fact("before", before, f"{before / 1e6:,.1f} MB")
    yield Fact("after", after, f"{after / 1e6:,.1f} MB")


INJECT = Action("add the seeds in a file to a paused crawl, which takes them up when resumed", _inject, "FILE")
COMPACT = Action("rewrite a paused crawl's store without free space", _compact)

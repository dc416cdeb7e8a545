"""Demo: a small web, made up by a seed, to try policies on. Its place on disk, and its build, once and whole.

A demo web has traits that the paper measures on ClueWeb22 (Craw4LLM, section 4 and appendix A). In-degrees have a
power-law tail and hardly correlate with influence, pages link to pages of similar influence, and sites differ.

Its files have the ClueWeb22 layout. Each is written by one of several processes; another one trains its model. ``web``:
sites, pages and their links. ``text``: what pages are made of, and their words.
"""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from crawl4llm.base import pages
from crawl4llm.base.errors import InputError
from crawl4llm.base.jobs import Told, run_jobs
from crawl4llm.base.whole_files import check_free, whole_folder, writing
from simulate.clueweb22 import files as writer
from simulate.clueweb22.files import DocumentHead
from simulate.clueweb22.records import HTML, INLINK, KINDS, OUTLINK, TXT, file_id_of
from simulate.demo.text import Link, Page, clean_text, page_html
from simulate.demo.web import SMALLEST_SITE, Web, plan_sites, stream

logger = logging.getLogger(__name__)

_VERSION: Final = 3  # to be raised with every change of what is generated
PAGES, HOSTS, _FEWEST_HOSTS = 20_000, 500, 10
LABEL, OTHER_LABEL = "__label__hq", "__label__cc"
_SMALL_PAGES, _SMALL_HOSTS = 2_500, 50  # of the model's small web; there are as many good documents
_GOOD_QUALITY: Final = (6.0, 1.8)  # parameters of the Beta distribution of quality
_RECORDS_PER_FILE: Final = 500  # fewer than the dataset has, so that the files can be written in parallel
_KILLED: Final = "a process of the build was killed; if memory ran out, use fewer --jobs"
_README: Final = """\
A generated web in the layout of ClueWeb22-A; not ClueWeb22 data. Made by `scrapy corpus demo` of crawl4llm:
{pages} pages, {hosts} hosts, seed {seed}. All hosts are under reserved top-level domains (RFC 2606).
"""
_START, _SECONDS_PER_PAGE = datetime(2022, 8, 1, tzinfo=timezone.utc), 3  # dates of pages


class DemoPaths(NamedTuple):
    """Paths of a demo web."""

    corpus: Path  # root of its ClueWeb22 tree
    model: Path  # its fastText model, with the label ``__label__hq``


class Plan(NamedTuple):
    """The parameters of a web, which is a function of them alone."""

    pages: int
    hosts: int
    seed: int


def demo_paths(folder: Path) -> DemoPaths:
    """Return the paths of a demo web that was built in ``folder``."""
    return DemoPaths(folder / "clueweb22", folder / "scorer.bin")


def ensure_demo(
    root: Path, *, pages: int = PAGES, hosts: int = HOSTS, seed: int = 0, jobs: int | None = None, progress: bool = True
) -> DemoPaths:
    """Return the demo web in a folder of ``root``; build it first if it is missing.

    Of several processes that want it at the same time, one builds and the others wait. ``jobs`` is the number of
    processes to build with, by default one for each core. Raises InputError for impossible sizes, and if the folder
    cannot be written.
    """
    folder = root / f"demo-{_VERSION}-{pages}-{hosts}-{seed}"
    if folder.exists():
        return demo_paths(folder)
    with writing(root, "the demo web"):
        root.mkdir(parents=True, exist_ok=True)
        with (root / f".{folder.name}.lock").open("wb") as lock:
            # Not flock: the processes of a killed build, which outlive it for a moment, do not hold this lock.
            fcntl.lockf(lock, fcntl.LOCK_EX)
            if not folder.exists():
                logger.info("Building the demo web in %s: %d pages, once, in about half a minute", folder, pages)
                build_demo(folder, pages=pages, hosts=hosts, seed=seed, jobs=jobs, progress=progress)
    return demo_paths(folder)


def build_demo(
    to: Path, *, pages: int = PAGES, hosts: int = HOSTS, seed: int = 0, jobs: int | None = None, progress: bool = True
) -> DemoPaths:
    """Build a demo web in ``to``, which must be absent or empty; it appears there only when it is complete.

    The bytes are the same by any number of processes. Leftovers of a killed build beside it are removed. Parameters and
    errors as for :func:`ensure_demo`; ``progress`` shows a bar on a terminal.
    """
    if hosts < _FEWEST_HOSTS:
        raise InputError(f"--hosts {hosts}: a demo web has at least {_FEWEST_HOSTS} hosts")
    if pages < hosts * 2 * SMALLEST_SITE:
        raise InputError(f"--pages {pages}: {hosts} hosts need at least {hosts * 2 * SMALLEST_SITE} pages")
    to = to.absolute()
    with writing(to, "the demo web"):
        check_free(to, "--to")
        with whole_folder(to) as temporary:
            work = _planned(Plan(pages, hosts, seed), demo_paths(temporary))
            told = Told(" pages", _KILLED, "building the demo web", None if progress else False)
            for _ in run_jobs(_do, work, jobs, told):
                pass
    return demo_paths(to)


# -- writing ----------------------------------------------------------------------------------------------------------


class _Job(NamedTuple):
    """A data file to be written in all four kinds; with the file id "", the model to be trained."""

    plan: Plan
    to: Path
    file_id: str
    size: int


def _planned(plan: Plan, to: DemoPaths) -> list[_Job]:
    """Write the root files of a tree, and return the rest of the work."""
    sites = plan_sites(plan.seed, plan.pages, plan.hosts)
    counts = Counter(map(file_id_of, _new_ids(site.language for site in sites for _ in range(site.size))))
    writer.write_root_files(to.corpus, _README.format(**plan._asdict()), dict.fromkeys(KINDS, counts))
    return [_Job(plan, to.model, "", 0), *(_Job(plan, to.corpus, *item) for item in sorted(counts.items()))]


def _new_ids(languages: Iterable[str]) -> list[str]:
    new = writer.NewIds(records_per_file=_RECORDS_PER_FILE)
    return [new.next(language) for language in languages]


def _do(job: _Job) -> None:
    if job.file_id:
        _tree(job.plan).write_file(job.to, job.file_id)
    else:
        train_model(job.to, job.plan.seed)


class _Tree:
    """The file tree of a web."""

    def __init__(self, plan: Plan) -> None:
        self._web = web = Web(*plan)
        shuffled = list(web.pages)
        stream(plan.seed, "ids").shuffle(shuffled)  # an id says nothing about its page
        keys = _new_ids(web.sites[page.site].language for page in shuffled)
        self._heads: dict[int | None, DocumentHead] = {}
        self._files: dict[str, list[Page]] = {}
        for page, key in zip(shuffled, keys, strict=True):
            self._heads[page.number] = DocumentHead(key, page.url)
            self._files.setdefault(file_id_of(key), []).append(page)
        self._inlinks: list[list[tuple[Link, bool]]] = [[] for _ in web.pages]
        for page, links in zip(web.pages, web.links, strict=True):
            for link, boilerplate in links.in_order():
                if link.target is not None:
                    self._inlinks[link.target].append((Link(page.number, page.url, link.anchor), boilerplate))

    def write_file(self, root: Path, file_id: str) -> None:
        """Write a file in all four kinds."""
        records = [self._records(page) for page in self._files[file_id]]
        for kind in KINDS:
            writer.write_data_file(root, kind, file_id, (record[kind] for record in records))

    def _records(self, page: Page) -> dict[str, bytes]:
        """Return a page's record of each kind."""
        head, links, site = self._heads[page.number], self._web.links[page.number], self._web.sites[page.site]
        blocks = self._web.blocks(page)
        html = page_html(page, site, blocks, links)
        date = _START + timedelta(seconds=_SECONDS_PER_PAGE * page.number)
        return {
            TXT: writer.txt_record(head, clean_text(blocks)),
            HTML: writer.html_record(head, html.encode(), date.strftime("%Y-%m-%dT%H:%M:%S.%fZ")),
            OUTLINK: writer.link_record(OUTLINK, head, [self._end(*link) for link in links.in_order()]),
            INLINK: writer.link_record(INLINK, head, [self._end(*link) for link in self._inlinks[page.number]]),
        }

    def _end(self, link: Link, boilerplate: bool) -> pages.Link:
        head = self._heads.get(link.target)
        return pages.Link(link.url, head.key if head else None, link.anchor, boilerplate)


_tree = cache(_Tree)  # each process plans the whole web anew, which takes less time than handing it over


def train_model(path: Path, seed: int) -> None:
    """Train a fastText model on the spot by DCLM's recipe and write it to ``path``. Equal seeds give equal bytes.

    Source of the recipe: Li et al. 2024, DataComp-LM, section 4.4: documents known to be good against a sample of the
    crawl, supervised fastText with word bigrams. The crawl is a small web of its own; the good documents are its
    articles, rewritten with more quality. They overlap, so that the scores spread.
    """
    import fasttext  # for the one process of a build that trains the model

    random, web = stream(seed, "model"), Web(_SMALL_PAGES, _SMALL_HOSTS, f"model of {seed}")
    articles = [page for page in web.pages if page.article and web.sites[page.site].language == "en"]

    def example(label: str, page: Page) -> str:
        return f"{label} {' '.join(clean_text(web.blocks(page)).split())}\n"

    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "train.txt").open("w", encoding="utf-8") as file:
        for page in web.pages:
            good = replace(random.choice(articles), quality=random.betavariate(*_GOOD_QUALITY))
            file.writelines([example(LABEL, replace(good, text_of=good.number)), example(OTHER_LABEL, page)])
        file.flush()
        options = {"wordNgrams": 2, "dim": 8, "bucket": 50_000, "minCount": 2, "epoch": 5, "lr": 1.2}
        model = fasttext.train_supervised(file.name, **options, thread=1, seed=1, verbose=0)
    model.save_model(os.fsencode(path))

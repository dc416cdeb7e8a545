"""The writer of a demo web: its files in the ClueWeb22 layout, each by one of several processes, and its model."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from crawl4llm.base.jobs import run_jobs
from simulate.clueweb22 import tree_writer as writer
from simulate.clueweb22.records import HTML, INLINK, KINDS, OUTLINK, TXT, file_id_of
from simulate.clueweb22.tree_writer import DocumentHead, LinkEnd
from simulate.demo.text import Link, Page, clean_text, page_html
from simulate.demo.web import Web, plan_sites, stream

LABEL, OTHER_LABEL = "__label__hq", "__label__cc"
_PAGES, _HOSTS = 2_500, 50  # of the small web; there are as many good documents
_GOOD_QUALITY: Final = (6.0, 1.8)  # parameters of the Beta distribution of quality
_RECORDS_PER_FILE: Final = 500  # fewer than the dataset has, so that the files can be written in parallel
_KILLED: Final = "a process of the build was killed; if memory ran out, use fewer --jobs"
_README: Final = """\
A generated web in the layout of ClueWeb22-A; not ClueWeb22 data. Made by `scrapy corpus demo` of crawl4llm:
{pages} pages, {hosts} hosts, seed {seed}. All hosts are under reserved top-level domains (RFC 2606).
"""
_START, _SECONDS_PER_PAGE = datetime(2022, 8, 1, tzinfo=timezone.utc), 3  # dates of pages


class Plan(NamedTuple):
    """The parameters of a web, which is a function of them alone."""

    pages: int
    hosts: int
    seed: int


class _Job(NamedTuple):
    """A data file to be written in all four kinds; with the file id "", the model to be trained."""

    plan: Plan
    to: Path
    file_id: str
    size: int


def write_web(plan: Plan, corpus: Path, model: Path, *, jobs: int, progress: bool) -> None:
    """Write a web's file tree to ``corpus`` and its model to ``model``, the same bytes by any number of processes.

    ``progress`` shows a bar on a terminal. Raises InputError if a process is killed, OSError if the disk fails.
    """
    sites = plan_sites(plan.seed, plan.pages, plan.hosts)
    keys = writer.assign_ids((site.language for site in sites for _ in range(site.size)), _RECORDS_PER_FILE)
    counts = Counter(map(file_id_of, keys))
    writer.write_root_files(corpus, _README.format(**plan._asdict()), dict.fromkeys(KINDS, counts))
    work = [_Job(plan, model, "", 0), *(_Job(plan, corpus, *item) for item in sorted(counts.items()))]
    for _ in run_jobs(_do, work, jobs, " pages", "building the demo web", _KILLED, None if progress else False):
        pass


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
        languages = [web.sites[page.site].language for page in shuffled]
        keys = writer.assign_ids(languages, _RECORDS_PER_FILE)
        self._heads: dict[int | None, DocumentHead] = {}
        self._files: dict[str, list[Page]] = {}
        for page, language, key in zip(shuffled, languages, keys, strict=True):
            self._heads[page.number] = DocumentHead(key, page.url, language)
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
            OUTLINK: writer.outlink_record(head, [self._end(*link) for link in links.in_order()]),
            INLINK: writer.inlink_record(head, [self._end(*link) for link in self._inlinks[page.number]]),
        }

    def _end(self, link: Link, boilerplate: bool) -> LinkEnd:
        head = self._heads.get(link.target)
        return LinkEnd(link.url, link.anchor, boilerplate, head.language if head else "", head.key if head else None)


_tree = cache(_Tree)  # each process plans the whole web anew, which takes less time than handing it over


def train_model(path: Path, seed: int) -> None:
    """Train a fastText model on the spot by DCLM's recipe and write it to ``path``. Equal seeds give equal bytes.

    Source of the recipe: Li et al. 2024, DataComp-LM, section 4.4: documents known to be good against a sample of the
    crawl, supervised fastText with word bigrams. The crawl is a small web of its own; the good documents are its
    articles, rewritten with more quality. They overlap, so that the scores spread.
    """
    import fasttext  # for the one process of a build that trains the model

    random, web = stream(seed, "model"), Web(_PAGES, _HOSTS, f"model of {seed}")
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
    model.save_model(str(path))

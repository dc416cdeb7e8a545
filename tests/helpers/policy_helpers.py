"""A small web of several hosts, policies of every kind on it, and crawls by them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from driven_crawl import Driven
from graph_corpus import GraphCorpus, NumberScorer

from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.crawl.web import load_scorers
from crawl4llm.frontier import Entry
from crawl4llm.options import Options
from crawl4llm.policies import Candidate, CrawledPage, Policy, Rating, bound_text, known_policies, load_policy
from crawl4llm.policies._ordering import make_policy
from crawl4llm.scoring.rating import PageRater
from crawl4llm.scoring.workers import PageWorkers

HOSTS = ("news.site.example", "blog.site.example", "ann.github.io", "bob.github.io", "10.0.0.1")
SEEDS = ("news.site.example/0", "bob.github.io/3")
TOPIC = "cheese"


class Web(GraphCorpus):
    """Documents whose key is their URL without its scheme."""

    def page(self, key: str) -> PageRecord:
        return replace(super().page(key), url=f"http://{key}")

    def _outlinks(self, key: str) -> list[Link]:
        return [link._replace(url=f"http://{link.key}") for link in super()._outlinks(key)]


def random_web() -> Web:
    """50 documents, a tenth of them without an influence score, some on the topic; always the same."""
    draw = random.Random(5)
    keys = [f"{host}/{number}" for host in HOSTS for number in range(10)]
    links: dict[str, list[str | None]] = {
        key: [*draw.choices(keys, k=draw.randrange(6)), *draw.choices([None, "gone.example/1"], k=draw.randrange(2))]
        for key in keys
    }
    texts = {}
    for key in keys:
        words = f" {TOPIC}" * (12 * (draw.random() < 0.1)) + " word" * draw.randrange(50)
        texts[key] = ("unknown" if draw.random() < 0.1 else f"{draw.random():.3f}") + words
    return Web(links, texts)


def variants(ranks: Path) -> dict[str, dict[str, Any]]:
    """Settings for each policy, and for what wraps one; ``ranks`` is a file for ``harmonic``, that for ``bound`` is
    beside it."""
    needed: dict[str, dict[str, Any]] = {
        "harmonic": {"harmonic_ranks": str(ranks)},
        "bound": {"bound_scores": str(ranks.parent / "bound.tsv")},
        "ensemble": {"ensemble_weights": "fasttext:1,length:0.5"},
    }
    named = {name: {"url_policy": name, **needed.get(name, {})} for name in known_policies()}
    return named | {
        "scorer:length": {"url_policy": "scorer:length"},
        "asc(random)": {"url_policy": "random", "order": "asc"},
        "hot_queue(backlink)": {"url_policy": "backlink", "hot_queue_topic": (TOPIC,)},
        "hot_queue(asc(influence))": {"url_policy": "influence", "order": "asc", "hot_queue_topic": (TOPIC, "none")},
    }


VARIANTS = list(variants(Path()))


def write_ranks(path: Path) -> Path:
    """Ranks of half of the documents of the web."""
    path.write_text("".join(f"{key}\t{number / 7!r}\n" for number, key in enumerate(sorted(random_web().keys())[::2])))
    return path


def new_policy(corpus: GraphCorpus, **settings: Any) -> Policy:
    """A policy as a crawl makes it; the scorer of influence is called ``fasttext``. What ``bound`` reads is written."""
    options = Options(**settings)
    _write_bound(corpus, settings)
    others = load_scorers(load_policy(options.url_policy).scorers(options), options)
    rater = PageRater(corpus, NumberScorer(), extractor=None, others=others)
    return make_policy(PageWorkers(rater, processes=0, time_limit=1.0), options)


def _write_bound(corpus: GraphCorpus, settings: Mapping[str, Any]) -> None:
    """Scores of half of the documents, for the corpus."""
    if path := settings.get("bound_scores"):
        scores = {key: number / 100 for number, key in enumerate(sorted(random_web().keys())[::2])}
        Path(path).write_text(bound_text(scores, corpus.identity(), NumberScorer.digest))


def new_crawl(corpus: GraphCorpus, folder: Path, **settings: Any) -> Driven:
    """A crawl by such a policy."""
    folder.mkdir(parents=True)
    _write_bound(corpus, settings)
    driven = Driven(corpus, folder, **settings)
    driven.take_policy(new_policy(corpus, **settings))
    return driven


class Told:
    """A policy that is told of pages by hand."""

    def __init__(self, **settings: Any) -> None:
        self.policy = new_policy(GraphCorpus({}), **settings)
        self.scores: dict[str, float] = {}
        """By key, of documents that are queued."""

    def seeds(self, *keys: str) -> None:
        self._enqueue([Candidate(key, "", 0, None) for key in keys])

    def pages(self, *pages: CrawledPage, scope: Sequence[str] = ()) -> None:
        """Pages that are crawled at once; documents of ``scope`` are visited already."""
        found: dict[str, Candidate] = {}
        self.policy.dequeued([page.entry for page in pages])
        for page in pages:
            self.scores.pop(page.entry.key, None)
        for page in pages:
            self.policy.crawled(page)
            for link in page.links:
                if link.key and link.key not in {*self.scores, *scope, *(one.entry.key for one in pages)}:
                    found.setdefault(link.key, Candidate(link.key, link.url, 1, page.entry.key, link.anchor))
        self._enqueue(list(found.values()))

    def _enqueue(self, candidates: list[Candidate]) -> None:
        for candidate, rated in zip(candidates, asyncio.run(self.policy.score(candidates)), strict=True):
            assert rated.score is not None
            self.scores[candidate.key] = rated.score
        self.scores |= {key: score for key, score in self.policy.reranked() if key in self.scores}


def page(key: str, influence: float | None, *links: str, anchors: Mapping[str, str] | None = None) -> CrawledPage:
    """A page that was crawled, whose URL is its key; its links are keys too."""
    return CrawledPage(
        Entry(key, f"http://{key}", 0.5, 0, None),
        influence,
        [Link(f"http://{link}", link, (anchors or {}).get(link, ""), False) for link in links],
    )


def rate(policy: Policy, candidates: Sequence[Candidate]) -> list[Rating]:
    """Ratings of candidates."""
    return asyncio.run(policy.score(candidates))

"""Crawls in which URL patterns are learnt: links to them are dropped when found, and when their turn comes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from driven_crawl import Driven, JobCrawl
from graph_corpus import URL, GraphCorpus

from crawl4llm.frontier.opening import memory_frontier

POSTS = 60
WORDS = [f"word{number}" for number in range(2000)]
ON: dict[str, Any] = {
    "url_policy": "breadth_first",
    "near_duplicates": "follow",
    "url_alias_pairs": 5,
    "url_worthless_pages": 8,
    "crawl_max_pages": 1000,
}


def web() -> GraphCorpus:
    """A blog whose front page leads to all posts, and only then to their forms, which are blank; each post leads to a
    copy of it."""
    links: dict[str, list[str | None]] = {"front": []}
    texts = {"front": "0.5 front"}
    for number in range(POSTS):
        post, form, copied = f"post{number}", f"post{number}?do=edit", f"post{number}?reply={number}"
        links["front"].append(post)
        links |= {post: [copied, "front"], form: [], copied: []}
        texts[post] = texts[copied] = f"0.9 {' '.join(random.Random(number).choices(WORDS, k=100))}"
        texts[form] = " "
    links["front"] += [f"post{number}?do=edit" for number in range(POSTS)]
    return GraphCorpus(links, texts)


def kinds(keys: list[str]) -> dict[str, int]:
    """How many keys there are of posts, forms and copies."""
    return {kind: sum(f"{kind}=" in key for key in keys) for kind in ("do", "reply")} | {
        "posts": sum("?" not in key for key in keys)
    }


def dropped(crawl: Driven) -> list[str]:
    return [line["id"] for line in crawl.failures if line["reason"] == "alias"]


@pytest.mark.parametrize("batch_size", [0, 7])
def test_what_is_learnt_holds_for_links_and_for_what_is_queued(tmp_path: Path, batch_size: int) -> None:
    for name in ("on", "off"):
        (tmp_path / name).mkdir()
    on = Driven(web(), tmp_path / "on", **ON, crawl_batch_size=batch_size).run("front")
    off_settings = {**ON, "url_alias_pairs": 0, "url_worthless_pages": 0}
    off = Driven(web(), tmp_path / "off", **off_settings, crawl_batch_size=batch_size).run("front")
    assert kinds(off.ids) == {"do": POSTS, "reply": POSTS, "posts": POSTS + 1}
    assert dropped(off) == []
    crawled, left = kinds(on.ids), kinds(dropped(on))
    assert crawled["posts"] == POSTS + 1
    assert left["posts"] == 0
    assert {kind: crawled[kind] + left[kind] for kind in ("do", "reply")} == {"do": POSTS, "reply": POSTS}
    assert 8 <= crawled["do"] <= 8 + 7 + 10
    assert 8 <= crawled["reply"] <= 8 + 7 + 10
    figures = on.figures
    assert figures["dropped/alias"] == figures["links/alias/worthless"] == len(dropped(on))
    assert figures["aliases/learnt"] == 2
    assert "aliases/ended" not in figures
    rules = {line["rule"] for line in on.failures if line["reason"] == "alias"}
    owner = URL.split("/")[2].split(".", 1)
    assert rules == {f"URL_WORTHLESS_PAGES ?{name} of {'.'.join(owner)}" for name in ("do=edit", "reply")}
    assert on.crawl.balance.problem is None
    found_late = [line for line in on.failures if line["parent"] == "front"]
    assert len(found_late) > 20, "they were queued before it was known"


@pytest.mark.parametrize("batch_size", [0, 7])
@pytest.mark.parametrize("policy", ["breadth_first", "link"])
def test_a_crawl_that_is_killed_again_and_again_drops_the_same(tmp_path: Path, batch_size: int, policy: str) -> None:
    options = {**ON, "url_policy": policy, "crawl_batch_size": batch_size}
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    whole = Driven(web(), tmp_path / "whole", **options).run("front")
    parts = 0
    while parts < 100:
        parts += 1
        part = JobCrawl(web(), tmp_path / "parts", **options, commit_interval_pages=5, commit_fsync=False)
        if part.job.state.crawl is None:
            part.start("front")
        in_flight = part.crawl.unanswered()
        for _ in range(25):  # the last ones are in no commit
            in_flight += part.dequeue()
            if in_flight:
                part.fetch(in_flight.pop(0))
            if part.crawl.can_advance:
                part.advance()
        finished, lines, failures, figures = part.crawl.finished, part.lines, part.failures, part.figures
        part.close()
        if finished:
            break
    assert 3 < parts < 100
    assert lines == whole.lines
    assert failures == whole.failures
    same = ("dropped/alias", "links/alias/worthless", "aliases/learnt", "pages/crawled")
    assert {key: figures[key] for key in same} == {key: whole.figures[key] for key in same}


def test_owners_in_turn(tmp_path: Path) -> None:
    """What is dropped frees its owner at once, and spends no budget."""
    frontier = memory_frontier(by_owners=True)
    options = {**ON, "crawl_batch_size": 0, "url_budget": 1000}
    crawl = Driven(web(), tmp_path, by_owners=frontier, **options)
    crawl.run("front")
    assert kinds(crawl.ids)["posts"] == POSTS + 1
    assert len(dropped(crawl)) > POSTS
    assert frontier.owners.counts.busy == 0


def test_seeds_are_not_dropped(tmp_path: Path) -> None:
    seeds = [f"post{number}?do=edit" for number in range(20)]
    crawl = Driven(web(), tmp_path, **ON, crawl_batch_size=7).run("front", *seeds)
    assert set(seeds) <= set(crawl.ids)

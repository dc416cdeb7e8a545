"""Where new texts are: with nothing known a policy's scores are its own, and mirrors lose."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import driven_crawl
import pytest
from driven_crawl import Driven, JobCrawl, NoTexts, pages_at_once
from policy_helpers import SEEDS, VARIANTS, Told, Web, new_crawl, new_policy, page, random_web, variants, write_ranks

from crawl4llm.policies import _novelty

WORDS = [f"word{number}" for number in range(2000)]
PAGES = 40


def mirrored_web() -> Web:
    """Sites whose pages link to others of theirs: ``first`` and a copy of it, and one that has a folder of copies."""
    draw = random.Random(7)
    links: dict[str, list[str | None]] = {"portal.example/": []}
    texts = {"portal.example/": f"0.5 {' '.join(draw.choices(WORDS, k=50))}"}
    for site in ("first.example/a", "mirror.example/a", "other.example/own", "other.example/copied"):
        keys = [f"{site}/{number:02d}" for number in range(PAGES)]
        links["portal.example/"] += keys[:3]
        for number, key in enumerate(keys):
            text = random.Random(f"own {number}" if site == "other.example/own" else number)
            links[key] = [*draw.choices(keys, k=3), keys[(number + 1) % PAGES]]
            texts[key] = f"{text.random():.3f} {' '.join(text.choices(WORDS, k=60))}"
    return Web(links, texts)


def lines(driven: Driven) -> list[dict[str, Any]]:
    added = {"near_duplicate_of", "known_text"}
    return [{name: value for name, value in line.items() if name not in added} for line in driven.lines]


@pytest.mark.parametrize("variant", VARIANTS)
def test_where_all_texts_are_new_a_crawl_is_what_it_was(variant: str, tmp_path: Path) -> None:
    settings = variants(write_ranks(tmp_path / "ranks"))[variant] | {"crawl_batch_size": 3}
    plain = new_crawl(random_web(), tmp_path / "plain", **settings).run(*SEEDS)
    compared = new_crawl(
        random_web(), tmp_path / "compared", **settings, near_duplicates="follow", known_texts="given"
    ).run(*SEEDS)
    assert compared.figures.get("pages/near_duplicates") is None
    assert lines(compared) == plain.lines
    assert compared.crawl.policy.name == plain.crawl.policy.name
    assert compared.figures.get("frontier/reranked") == plain.figures.get("frontier/reranked")


class TextsOfFirst(NoTexts):
    """All texts of the first site, which its mirror and the copies have too."""

    def __init__(self) -> None:
        web = mirrored_web()
        self._texts = {web.text(key) for key in web.keys() if key.startswith("first.example/")}

    def knows(self, text: str, signature: bytes) -> bool:
        return text in self._texts


@pytest.mark.parametrize("policy", ["link", "parent_mean", "parent_first", "random"])
def test_places_of_known_texts_lose(policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One site alone has new texts, in one of its two folders."""
    monkeypatch.setattr(driven_crawl, "NoTexts", TextsOfFirst)
    settings: dict[str, Any] = {"url_policy": policy, "known_texts": "given", "crawl_batch_size": 1}
    learns = new_crawl(mirrored_web(), tmp_path / "learns", **settings).run("portal.example/")
    monkeypatch.setattr(_novelty.Novelty, "_learn", lambda self, page: None)
    plain = new_crawl(mirrored_web(), tmp_path / "plain", **settings).run("portal.example/")
    assert len(learns.lines) == len(plain.lines) == 4 * PAGES + 1
    found, told_nothing = ([not line["known_text"] for line in one.lines[: 2 * PAGES]] for one in (learns, plain))
    assert sum(found) > 1.5 * sum(told_nothing)


WRAPPED = {
    "url_policy": "link",
    "near_duplicates": "follow",
    "known_texts": "given",
    "hot_queue_topic": ("word7",),
    "crawl_max_pages": 90,
}


@pytest.mark.parametrize("batch_size", [0, 5])
def test_slices_and_the_order_of_answers_leave_no_mark(batch_size: int, tmp_path: Path) -> None:
    settings = {**WRAPPED, "crawl_batch_size": batch_size}
    whole = new_crawl(mirrored_web(), tmp_path / "whole", **settings).run("portal.example/")
    with pages_at_once(2):
        again = new_crawl(mirrored_web(), tmp_path / "again", **settings).run("portal.example/", shuffled_by=1)
    assert again.lines == whole.lines
    assert again.crawl.policy.save() == whole.crawl.policy.save()


@pytest.mark.parametrize("policy", ["link", "random"])
def test_a_crawl_goes_on_from_what_was_saved(policy: str, tmp_path: Path) -> None:
    settings = {**WRAPPED, "url_policy": policy, "crawl_batch_size": 5}
    whole = new_crawl(mirrored_web(), tmp_path / "whole", **settings).run("portal.example/")
    resumed = new_crawl(mirrored_web(), tmp_path / "resumed", **settings)
    resumed.start("portal.example/")
    while not resumed.crawl.finished:
        state = resumed.crawl.policy.save()
        resumed.take_policy(new_policy(resumed.corpus, **settings))
        resumed.crawl.policy.load(state)
        assert resumed.crawl.policy.save() == state
        resumed.batch()
    assert resumed.lines == whole.lines


@pytest.mark.parametrize("batch_size", [0, 7])
def test_a_crawl_that_is_killed_again_and_again_goes_the_same_way(tmp_path: Path, batch_size: int) -> None:
    settings: dict[str, Any] = {
        "url_policy": "link",
        "near_duplicates": "follow",
        "known_texts": "given",
        "crawl_batch_size": batch_size,
    }
    settings |= {"commit_interval_pages": 9, "commit_fsync": False, "crawl_max_pages": 100}
    whole = new_crawl(mirrored_web(), tmp_path / "whole", **settings).run("portal.example/")
    lives = 0
    while True:
        lives += 1
        part = JobCrawl(mirrored_web(), tmp_path, **settings)
        part.start("portal.example/")
        in_flight = part.crawl.unanswered()
        for _ in range(25):  # the last ones are in no commit
            in_flight += part.dequeue()
            if in_flight:
                part.fetch(in_flight.pop(0))
            if part.crawl.can_advance:
                part.advance()
        finished, found = part.crawl.finished, part.lines
        part.close()
        if finished:
            break
    assert 4 < lives < 100
    assert found == whole.lines


def differing(told: Told, known: str = "known.example", new: str = "new.example") -> None:
    """Pages of two hosts, one of which has known texts alone: from now on hosts count as differing."""
    for number in range(8):
        told.pages(page(f"{known}/{number}", 0.5)._replace(novel=False))
        told.pages(page(f"{new}/{number}", 0.5)._replace(novel=True))


def test_nothing_is_lost_until_hosts_differ() -> None:
    told = Told(url_policy="breadth_first", near_duplicates="follow", known_texts="given")
    told.seeds("seed.example/")
    told.pages(page("seed.example/", 0.5, "known.example/x", "new.example/x", "other.example/x"))
    before = dict(told.scores)
    told.pages(page("known.example/", 0.5)._replace(novel=False))
    assert told.scores == before, "one known page is no evidence"
    differing(told)
    after = dict(told.scores)
    assert after["known.example/x"] < 5 * before["known.example/x"] < 0, "negative scores are divided"
    assert after == before | {"known.example/x": after["known.example/x"]}
    told.pages(page("known.example/9", 0.5)._replace(novel=None))
    assert told.scores == after, "a page without text says nothing"


def test_pages_below_the_mean_are_no_evidence() -> None:
    told = Told(url_policy="breadth_first", near_duplicates="follow", known_texts="given")
    told.seeds("seed.example/")
    told.pages(page("seed.example/", 0.5, "known.example/x"))
    before = dict(told.scores)
    told.pages(*(page(f"good.example/{number}", 0.6)._replace(novel=True) for number in range(8)))
    told.pages(*(page(f"known.example/{number}", 0.1)._replace(novel=False) for number in range(8)))
    assert told.scores == before
    told.pages(*(page(f"known.example/good/{number}", 0.6)._replace(novel=False) for number in range(8)))
    assert told.scores["known.example/x"] < 5 * before["known.example/x"]


def test_the_worst_are_forgotten_and_keep_their_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_novelty, "_MOST_WAITING", 10)
    told = Told(url_policy="parent_first", near_duplicates="follow", known_texts="given")
    told.seeds("seed.example/")
    differing(told)
    told.pages(page("seed.example/", 0.9, *(f"a.example/{number}" for number in range(8))))
    told.pages(page("x.example/", 0.1, *(f"b.example/{number}" for number in range(8))))
    told.pages(page("a.example/page", 0.5)._replace(novel=False), page("b.example/page", 0.5)._replace(novel=False))
    (lower,) = {told.scores[f"a.example/{number}"] for number in range(8)}
    assert lower < 0.9 / 5
    kept, low = sorted({told.scores[f"b.example/{number}"] for number in range(8)}, reverse=True)
    assert kept == 0.1
    assert low == pytest.approx(lower / 9)

"""Pages whose text is like an earlier one's: found, counted, their links followed or not, and known after a restart."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest
from driven_crawl import Driven, JobCrawl
from graph_corpus import GraphCorpus

from crawl4llm.base.errors import InputError
from crawl4llm.crawl.pieces import StoredPieces
from crawl4llm.frontier.store import Store
from crawl4llm.parts.near_duplicates.work import NearDuplicates
from crawl4llm.scoring import signatures
from crawl4llm.scoring.signatures import SIGNATURE, require_library, signature_of

PAGES, COPIES = 40, 20
WORDS = [f"word{number}" for number in range(3000)]


def prose(number: int, words: int = 300) -> list[str]:
    return random.Random(number).choices(WORDS, k=words)


def copied(number: int) -> str:
    """A text with two words changed in 300: 290 of its 296 runs of five words, or more, are as they were."""
    words = prose(number)
    words[100] = words[200] = "changed"
    return " ".join(words)


def web() -> GraphCorpus:
    """A chain of pages from ``p00``; each of the first also leads to a copy of it, and only that to a page ``x``."""
    links: dict[str, list[str | None]] = {}
    texts = {}
    for number in range(PAGES):
        links[f"p{number:02d}"] = [f"p{number + 1:02d}"] if number + 1 < PAGES else []
        texts[f"p{number:02d}"] = f"0.9 {' '.join(prose(number))}"
    for number in range(COPIES):
        links[f"p{number:02d}"].append(f"q{number:02d}")
        links[f"q{number:02d}"] = [f"x{number:02d}"]
        texts[f"q{number:02d}"] = f"0.9 {copied(number)}"
        links[f"x{number:02d}"] = []
        texts[f"x{number:02d}"] = f"0.9 {' '.join(prose(1000 + number))}"
    links["p00"] += ["blank1", "blank2"]
    links.update(blank1=[], blank2=[])
    texts.update(blank1=" ", blank2=" ")
    return GraphCorpus(links, texts)


def crawl(folder: Path, near: str, **more: Any) -> Driven:
    options = {"url_policy": "breadth_first", "crawl_max_pages": 1000, "crawl_batch_size": 7, **more}
    return Driven(web(), folder, near_duplicates=near, **options).run("p00")


def test_a_text_that_is_nearly_an_earlier_one_is_found_and_no_other_is() -> None:
    found = NearDuplicates()
    for number in range(200):
        assert found.add(number, signature_of(" ".join(prose(number)))) is None
    for number in range(200):
        assert found.add(1000 + number, signature_of(copied(number))) == number
    half = [" ".join(prose(number)[:150] + prose(500 + number)[:150]) for number in range(200)]
    assert [found.add(2000 + number, signature_of(text)) for number, text in enumerate(half)] == [None] * 200


def test_short_texts_and_blank_ones(tmp_path: Path) -> None:
    found = NearDuplicates()
    assert found.add(0, signature_of("Not found")) is None
    assert found.add(1, signature_of("not  FOUND")) == 0
    assert found.add(2, signature_of("Not here")) is None
    assert signature_of(" \n") == b""
    assert [found.add(number, b"") for number in (3, 4)] == [None, None]
    assert len(signature_of("a lone \ud800 half of a character")) == SIGNATURE.size


def test_a_library_that_is_missing_or_another_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    require_library()
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "rensa", None)
        with pytest.raises(InputError, match="pip install 'rensa"):
            require_library()
    monkeypatch.setattr(signatures, "SCHEME", "rensa 3")
    with pytest.raises(InputError, match="pip install 'rensa"):
        require_library()


def test_the_links_of_near_duplicates_are_followed_or_left(tmp_path: Path) -> None:
    runs = {}
    for near in ("off", "follow", "leave"):
        (tmp_path / near).mkdir()
        runs[near] = crawl(tmp_path / near, near)
    assert set(runs["follow"].ids) == set(runs["off"].ids)
    assert set(runs["follow"].ids) - set(runs["leave"].ids) == {f"x{number:02d}" for number in range(COPIES)}
    assert all("near_duplicate_of" not in line for line in runs["off"].lines)
    for near in ("follow", "leave"):
        by_id = {line["id"]: line for line in runs[near].lines}
        like = {key: line["near_duplicate_of"] for key, line in by_id.items() if line["near_duplicate_of"] is not None}
        assert like == {f"q{number:02d}": by_id[f"p{number:02d}"]["order"] for number in range(COPIES)}
        assert runs[near].figures["pages/near_duplicates"] == COPIES
    assert runs["leave"].figures["links/near_duplicate"] == COPIES
    runs["off"].crawl.counters.counts.pop("pages/near_duplicates", None)
    assert "pages/near_duplicates" not in runs["off"].crawl.counters.counts


@pytest.mark.parametrize("worthless", [False, True])
def test_policies_are_told_that_near_duplicates_are_worth_nothing(tmp_path: Path, *, worthless: bool) -> None:
    """If it is asked for; the log has their scores as they are."""
    run = crawl(tmp_path, "follow", url_policy="parent_first", near_duplicates_worthless=worthless)
    by_id = {line["id"]: line for line in run.lines}
    assert len(by_id) == PAGES + 2 * COPIES + 2
    assert all(by_id[f"q{number:02d}"]["influence"] == 0.9 for number in range(COPIES))
    assert {by_id[f"x{number:02d}"]["priority"] for number in range(COPIES)} == {0.0 if worthless else 0.9}
    assert {by_id[f"p{number:02d}"]["priority"] for number in range(1, PAGES)} == {0.9}


@pytest.mark.parametrize("batch_size", [0, 7])
def test_a_crawl_that_is_killed_again_and_again_says_the_same(tmp_path: Path, batch_size: int) -> None:
    options: dict[str, Any] = {
        "url_policy": "breadth_first",
        "near_duplicates": "leave",
        "crawl_batch_size": batch_size,
        "commit_interval_pages": 5,
        "commit_fsync": False,
    }
    (tmp_path / "whole").mkdir()
    whole = crawl(tmp_path / "whole", "leave", crawl_batch_size=batch_size)
    ids: list[str] = []
    (tmp_path / "parts").mkdir()
    parts = 0
    while parts < 100:
        parts += 1
        part = JobCrawl(web(), tmp_path / "parts", **options)
        part.start("p00")
        in_flight = part.crawl.unanswered()
        for _ in range(12):  # the last ones are in no commit
            in_flight += part.dequeue()
            if in_flight:
                part.fetch(in_flight.pop(0))
            if part.crawl.can_advance:
                part.advance()
        finished, ids, lines = part.crawl.finished, part.ids, part.lines
        part.close()
        if finished:
            break
    assert 3 < parts < 100
    assert ids == whole.ids
    assert [line["near_duplicate_of"] for line in lines] == [line["near_duplicate_of"] for line in whole.lines]


def test_what_is_remembered_is_bounded_and_kept(tmp_path: Path) -> None:
    signatures = [signature_of(" ".join(prose(number, 30))) for number in range(150)]
    chosen = random.Random(1).choices(range(150), k=600)
    at_once = NearDuplicates(64)
    verdicts = [at_once.add(page, signatures[which]) for page, which in enumerate(chosen)]
    assert verdicts.count(None) > 150, "some were forgotten"
    assert any(verdict is not None for verdict in verdicts)
    again: list[int | None] = []
    for start in range(0, 600, 60):  # each part by another process
        store = Store(tmp_path / "store", fsync=False)
        pieces = StoredPieces(store)
        found = NearDuplicates(64)
        found.keep_in(pieces)
        again += [found.add(start + place, signatures[which]) for place, which in enumerate(chosen[start : start + 60])]
        pieces.save()
        store.commit()
        store.close()
    assert again == verdicts


def test_a_damaged_store_is_said(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", fsync=False)
    pieces = StoredPieces(store)
    found = NearDuplicates()
    found.keep_in(pieces)
    found.add(0, signature_of("some text"))
    pieces.save()
    (key,) = (key for key, _ in store.items("state", b"policy/near_duplicates/"))
    store.put("state", key, b'[1, 0, "00"]')
    with pytest.raises(InputError, match="near_duplicates"):
        NearDuplicates().keep_in(StoredPieces(store))
    store.close()

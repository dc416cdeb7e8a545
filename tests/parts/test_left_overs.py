"""Pages whose text is left-overs are worth less, if LOWER_LEFT_OVERS is on; no other page is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from addon_site import Answer
from crawl_helpers import crawl_log, scrapy, stats
from driven_crawl import Driven
from graph_corpus import GraphCorpus
from live_helpers import crawl_live
from owner_sites import serve_owners

from crawl4llm.options import Options
from crawl4llm.parts import Rated, open_parts
from crawl4llm.parts.left_overs.work import kept_share
from crawl4llm.scoring.lines import Lines

PROSE = "0.9 of the pages of a crawl have a text like this one, whose lines have more than two words each."


def rated(lines: Lines | None, influence: float | None = 0.8) -> tuple[Rated, dict[str, int]]:
    """Return a page as the part leaves it, and the counts."""
    counts: Counter[str] = Counter()
    parts = open_parts(Options(lower_left_overs=True)).begun(counts)
    one = Rated(influence, lines=lines)
    for see in parts.having("rated"):
        see(0, one)
    return one, {name: count for name, count in counts.items() if count}


@pytest.mark.parametrize(
    ("lines", "share", "reason"),
    [
        (Lines(12.0, 0.0), 1.0, None),
        (Lines(12.0, 0.5), 1.0, None),
        (Lines(2.0, 0.0), 1.0, None),
        (Lines(1.5, 0.0), 0.5, "short_lines"),
        (Lines(1.0, 0.0), 0.0, "short_lines"),
        (Lines(0.2, 0.0), 0.0, "short_lines"),
        (Lines(3.0, 0.5), 0.5, "links"),
        (Lines(40.0, 1.0), 0.0, "links"),
        (Lines(1.0, 1.0), 0.0, "short_lines"),
    ],
)
def test_what_lowers_an_influence(lines: Lines, share: float, reason: str | None) -> None:
    one, counts = rated(lines)
    assert kept_share(lines) == share
    assert one.influence == pytest.approx(0.8 * share)
    if reason is None:
        assert one.line == {"left_overs": None, "lowered_from": None}
        assert (one.metadata, counts) == ({}, {})
    else:
        assert one.line == {"left_overs": reason, "lowered_from": 0.8}
        assert one.metadata == {"left-overs": reason, "lowered-from": 0.8}
        assert counts == {"pages/left_overs": 1, f"left_overs/{reason}": 1}


@pytest.mark.parametrize(
    ("lines", "influence"), [(None, 0.0), (None, None), (Lines(1, 0), None), (Lines(1, 0), 0.0), (Lines(1, 0), -2.0)]
)
def test_what_has_no_text_or_no_positive_score_stays(lines: Lines | None, influence: float | None) -> None:
    one, counts = rated(lines, influence)
    assert (one.influence, counts) == (influence, {})


def web() -> GraphCorpus:
    """A seed that leads to a page of prose and to one of single words, of the same score."""
    texts = {"s": PROSE, "p": PROSE, "w": "0.9\nHome\nedit\nNews", "blank": " "}
    return GraphCorpus({"s": ["p", "w", "blank"], "p": [], "w": [], "blank": []}, texts)


def log_of(folder: Path, **options: Any) -> list[dict[str, Any]]:
    folder.mkdir()
    Driven(web(), folder, url_policy="breadth_first", crawl_max_pages=10, **options).run("s")
    return crawl_log(folder)


def test_a_crawl_by_clean_texts_goes_by_their_lines(tmp_path: Path) -> None:
    log = {line["id"]: line for line in log_of(tmp_path / "on", lower_left_overs=True)}
    assert log["p"]["influence"] == 0.9
    assert log["w"]["influence"] == 0.0
    assert (log["w"]["left_overs"], log["w"]["lowered_from"]) == ("short_lines", 0.9)
    assert (log["blank"]["influence"], log["blank"]["left_overs"]) == (0.0, None)


def test_without_it_nothing_is_lowered_or_told(tmp_path: Path) -> None:
    for line in log_of(tmp_path / "off"):
        assert line["influence"] == (0.0 if line["id"] == "blank" else 0.9)
        assert not line.keys() & {"left_overs", "lowered_from"}


MENU = "".join(f"<li><a href='/{number}'>Chapter {number} of the whole manual</a></li>" for number in range(1, 20))
ARTICLE = "<p>Each paragraph of this page has a number of words, so that nobody takes it for a menu.</p>" * 6


def html(main: str) -> Answer:
    return Answer(f"<html><body><main>{main}</main></body></html>".encode())


def test_a_live_crawl_lowers_a_list_of_links(tmp_path: Path) -> None:
    """The links are found by the process that reads a page; the archive and `scrapy explain` tell of it."""
    with serve_owners(1) as (site,):
        site.pages = {
            "/": html(f"{ARTICLE}<p><a href='/menu'>menu</a></p>"),
            "/menu": html(f"<ul>{MENU}</ul>"),
        }
        settings: dict[str, Any] = {"DELAY_FACTOR": 0, "CRAWL_MAX_PAGES": 2, "SCORER": "length"}
        result = crawl_live([f"{site.url}/"], tmp_path / "run", **settings)
        assert result.returncode == 0, result.stderr
        other = crawl_live([f"{site.url}/"], tmp_path / "off", **settings, LOWER_LEFT_OVERS=False)
        assert other.returncode == 0, other.stderr
    article, menu = crawl_log(tmp_path / "run")
    plain = crawl_log(tmp_path / "off")
    assert article["influence"] == plain[0]["influence"] > 0
    assert (article["left_overs"], article["lowered_from"]) == (None, None)
    assert menu["left_overs"] == "links"
    assert menu["lowered_from"] == plain[1]["influence"] > menu["influence"]
    assert stats(tmp_path / "run")["pages/left_overs"] == 1
    told = scrapy("explain", menu["id"], "--run", str(tmp_path / "run")).stdout
    assert f"from {menu['lowered_from']:.6f} to {menu['influence']:.6f}, as left-overs: links" in told
    assert json.loads((tmp_path / "run/settings.json").read_text())["lower_left_overs"] is True

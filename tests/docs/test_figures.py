"""Figures in README and docs are those of benchmarks/measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from crawl_helpers import PROJECT

from benchmarks import marked
from benchmarks.marked import UnknownFigure, filled, known
from benchmarks.report import written
from benchmarks.results import Figure, Result, Table

TABLE = Table(
    "Crawls, 40 pages", ["", "CPU s", "recall at 25%"], [["link, n = 10", 1234.5, "0.770±0.024"], ["other", 2, None]]
)
RESULT = Result(
    "quick",
    ["the demo web"],
    [TABLE],
    [Figure("wall / peer", 0.5, 1), Figure("lost", 3, 0), Figure("error rate", 4.44e-8, 1)],
)


@pytest.fixture
def figures(tmp_path: Path) -> dict[tuple[str, ...], marked.Cell]:
    parts = {name: value for name, value in vars(RESULT).items() if name not in ("tables", "figures")}
    parts |= {"tables": [vars(TABLE)], "figures": [vars(one) for one in RESULT.figures]}
    machine = {"date": "2026-11-29 08:00 UTC", "commit": "abc"}
    (tmp_path / "quick.json").write_text(json.dumps({**parts, "machine": machine}))
    (tmp_path / "other.json").write_text('{"tables": {}}')
    return known(tmp_path)


def test_pages_have_the_figures_that_were_measured() -> None:
    for page, text in written().items():
        assert page.read_text() == text, f"{page.name}; run: python -m benchmarks.report"


def test_headline_figures_of_the_readme_are_marked() -> None:
    table = (PROJECT / "README.md").read_text().partition("## Measured")[2].partition("\n\n[")[0]
    rows = [re.sub(r"<!--=.*?<!--/-->|`[^`]*`", "", row.split("|")[2]) for row in table.splitlines() if row[:2] == "| "]
    assert len(rows) >= 5
    assert [row for row in rows if re.search(r"\d", row.replace("limit 0.75", ""))] == []


def test_output_in_the_readme_is_that_of_the_demo_web() -> None:
    text, found = (PROJECT / "README.md").read_text(), known()
    (influence,) = [
        value for name, value in found.items() if name[0] == "demo" and name[2:] == ("influence", "of-random")
    ]
    assert f"    {influence:.2f} times that of random" in text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<!--=quick.crawls.link.cpu-s-->1.5<!--/--> s", "<!--=quick.crawls.link.cpu-s-->1,234.5<!--/--> s"),
        ("<!--=quick.crawls.link.cpu-s--><!--/-->", "<!--=quick.crawls.link.cpu-s-->1,234<!--/-->"),
        ("<!--=quick.crawls.link.recall-->0.1<!--/-->", "<!--=quick.crawls.link.recall-->0.8<!--/-->"),
        ("<!--=quick.crawls.link.recall-->1%<!--/-->", "<!--=quick.crawls.link.recall-->77%<!--/-->"),
        ("<!--=quick.crawls.link.recall-->0±0<!--/-->", "<!--=quick.crawls.link.recall-->0.770±0.024<!--/-->"),
        ("<!--=quick.wall-peer-->0.12<!--/-->", "<!--=quick.wall-peer-->0.50<!--/-->"),
        ("<!--=quick.error-rate-->0.0012<!--/-->", "<!--=quick.error-rate-->4.44e-08<!--/-->"),
        (
            "<!--=quick.missed-->7<!--/--> of <!--=quick.limits-->8<!--/-->",
            "<!--=quick.missed-->1<!--/--> of <!--=quick.limits-->3<!--/-->",
        ),
        ("<!--=quick.date-->?<!--/-->", "<!--=quick.date-->2026-11-29<!--/-->"),
    ],
)
def test_a_figure_is_written_as_the_one_before(
    figures: dict[tuple[str, ...], marked.Cell], before: str, after: str
) -> None:
    assert filled(f"It takes {before}.", figures) == f"It takes {after}."


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("It takes <!--=quick.crawls.link.wall-->1<!--/-->", "quick.crawls.link.wall names none"),
        ("It takes <!--=quick.crawls.oth.cpu-s-->1<!--/-->", "names none"),
        ("It takes <!--=quick.crawls-->1<!--/-->", "names none"),
        ("One.\n- <!--=quick.missed-->1<!--/-->", "line 2 starts with a marker"),
    ],
)
def test_a_marker_that_names_nothing_is_told(
    figures: dict[tuple[str, ...], marked.Cell], text: str, wrong: str
) -> None:
    with pytest.raises(UnknownFigure, match=re.escape(wrong)):
        filled(text, figures)


def test_a_name_that_stands_for_two_is_told() -> None:
    figures: dict[tuple[str, ...], marked.Cell] = {("a", "disk-new"): 1.0, ("a", "disk-old"): 2.0}
    with pytest.raises(UnknownFigure, match=r"names 2, such as a\.disk-new and a\.disk-old"):
        filled("x <!--=a.disk-->1<!--/-->", figures)

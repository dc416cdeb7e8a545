"""Plots: text and gaps survive, colours can be told apart, no line hides another."""

from __future__ import annotations

import math
import random
import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="needs the extra evaluate")

from report_helpers import FIGURES, LONG

from crawl4llm.tools.evaluate import report as colours
from crawl4llm.tools.evaluate.figures import Figure, Series
from crawl4llm.tools.evaluate.report import draw

SVG = "{http://www.w3.org/2000/svg}"


def figure(*series: Series, x_log: bool = False, y_log: bool = False) -> Figure:
    return Figure("f", "title", "definition", "x", "y", series, x_log=x_log, y_log=y_log)


def svg_of(figure: Figure) -> str:
    """The drawing in this format alone, which takes a third of the time of all of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(colours, "_FORMATS", {"svg": colours._FORMATS["svg"]})
        return draw(figure)["svg"].decode()


def curves(svg: str, colour: str = colours.SERIES[0]) -> list[str]:
    """What the lines of a colour are made of, the legend's aside."""
    paths = re.findall(r'<path d="([^"]*)"[^>]*?style="fill: none; stroke: (#\w{6})', svg)
    return [path for path, stroke in paths if stroke == colour][:-1]


@pytest.mark.parametrize("drawn", FIGURES, ids=lambda drawn: drawn.id)
def test_plot_is_xml_with_text_and_title(drawn: Figure) -> None:
    root = ET.fromstring(svg_of(drawn))
    assert root.tag == f"{SVG}svg"
    texts = ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]
    assert drawn.x_label in texts
    assert drawn.y_label in texts
    title = root.find(f"{SVG}title")
    assert title is not None
    assert title.text is not None
    assert title.text[:20] == drawn.title[:20]
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))


def test_names_in_the_legend() -> None:
    root = ET.fromstring(svg_of(FIGURES[0]))
    texts = ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]
    assert "influence" in texts
    assert any(text.startswith("</script></title><script>") for text in texts)
    assert all(len(text) < 100 for text in texts)
    assert any(text.startswith(LONG[:25]) and text.endswith(LONG[-25:]) for text in texts)


def test_names_are_not_mathematics() -> None:
    assert ">of $x_1$ &lt;b&gt;</text>" in svg_of(figure(Series("of $x_1$ <b>", [1, 2], [1, 2])))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_can_be_read() -> None:
    """Contrast of at least 4.5 to 1 for text and 3 to 1 for lines (WCAG 2.2, 1.4.3 and 1.4.11)."""
    for colour in (*colours.SERIES, colours.NEUTRAL):
        darker, lighter = sorted((luminance(colour), luminance("#ffffff")))
        assert (lighter + 0.05) / (darker + 0.05) >= (3 if colour in colours.SERIES else 4.5), colour


def test_the_colour_blind_can_tell_policies_apart() -> None:
    """By the matrices of Machado et al. 2009 for protanopia and deuteranopia, and distances in CIELAB."""
    protanopia = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    deuteranopia = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    white = np.array([0.9505, 1, 1.089])
    shares = np.array([[int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)] for colour in colours.SERIES])
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    for seen in (np.eye(3), np.array(protanopia), np.array(deuteranopia)):
        x, y, z = np.cbrt(np.clip(linear @ seen.T, 0, 1) @ to_xyz.T / white).T
        lab = np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)
        apart = np.linalg.norm(lab[:, None] - lab[None], axis=2) + 1000 * np.eye(len(lab))
        assert apart.min() > 20


def test_a_policy_has_its_colour_whatever_its_place() -> None:
    bound = Series("bound", [1, 2], [3, 3], kind="dashed", place=-1)
    svg = svg_of(figure(bound, Series("second", [1, 2], [1, 2], place=1), Series("first", [1, 2], [1, 2], place=0)))
    assert [len(curves(svg, colour)) for colour in colours.SERIES[:3]] == [1, 1, 0]
    assert f"stroke: {colours.NEUTRAL}" in svg


def test_no_line_is_hidden_under_another() -> None:
    """Of lines that coincide, of different or of the same colour, each shows markers of its own."""
    same = [Series(name, range(500), range(500), place=place) for name, place in (("a", 0), ("b", 1), ("c", 1))]
    root = ET.fromstring(svg_of(figure(*same)))
    places: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for use in root.iter(f"{SVG}use"):
        colour = (use.get("style") or "").removeprefix("fill: ")
        if colour in colours.SERIES:
            shape = use.get("{http://www.w3.org/1999/xlink}href") or ""
            places.setdefault((shape, colour), []).append((float(use.get("x", 0)), float(use.get("y", 0))))
    assert [colour for _, colour in places] == [colours.SERIES[0], colours.SERIES[1], colours.SERIES[1]]
    marks = [some[:-1] for some in places.values()]  # the last stands in the legend
    assert all(len(some) >= 4 for some in marks)
    along = sorted(place for some in marks for place in some)
    assert min(math.dist(one, other) for one, other in pairwise(along)) > 10


def test_undefined_values_leave_gaps() -> None:
    whole = curves(svg_of(figure(Series("s", range(6), [1, 2, 3, 4, 3, 2]))))
    gap = curves(svg_of(figure(Series("s", range(6), [1, 2, None, 4, 3, 2]))))
    assert [path.count("M") for path in whole] == [1]
    assert [path.count("M") for path in gap] == [2]


@pytest.mark.parametrize(("x", "y"), [([1, 2, 3], [None, 5, None]), ([7], [5])])
def test_a_point_alone_is_seen(x: list[float], y: list[float | None]) -> None:
    dots = re.findall(rf'<use [^>]*style="fill: {colours.SERIES[0]}"', svg_of(figure(Series("s", x, y))))
    assert len(dots) == 2, "its own, and the legend's"


@pytest.mark.parametrize("y", [[], [None], [1], [0, 0, 0], [-1, 0, 5], [1e-30, 1e30, 1], [math.nan] * 3])
@pytest.mark.parametrize(("x_log", "y_log"), [(False, False), (True, True)])
def test_odd_series(y: list[float | None], x_log: bool, y_log: bool) -> None:
    kinds: tuple[Literal["line", "dashed", "points"], ...] = ("line", "dashed", "points")
    series = [Series(kind, range(len(y)), y, kind=kind) for kind in kinds]
    svg = draw(figure(*series, x_log=x_log, y_log=y_log))["svg"].decode()
    assert not re.search(r"\b(nan|inf)\b", svg)


@pytest.mark.parametrize("kind", ["line", "points"])
def test_values_that_a_logarithmic_axis_has_no_place_for(kind: Literal["line", "points"]) -> None:
    x, y = [0.0, -1, 1, 10, 100, 1000], [5.0, 5, 5, 0, 5, 6]
    odd = figure(Series("s", x, y, kind=kind), x_log=True, y_log=True)
    gap: list[float | None] = [5.0, None, 5, 6]
    assert svg_of(odd) == svg_of(figure(Series("s", x[2:], gap, kind=kind), x_log=True, y_log=True))


def test_fifty_thousand_points() -> None:
    """They are an image in the drawing."""
    chance = random.Random(0)
    y = [chance.random() for _ in range(50_000)]
    assert len(svg_of(figure(Series("s", range(50_000), y, kind="points")))) < 500_000


def test_labels_of_ticks() -> None:
    drawn = svg_of(figure(Series("s", [0, 20_000], [-0.2, 0.4])))
    texts = re.findall(r">([^<>]*)</text>", drawn)
    assert {"0", "20,000", "\N{MINUS SIGN}0.2", "0.3"} <= set(texts)
    logarithmic = svg_of(figure(Series("s", [1, 1000], [1, 2]), x_log=True))
    assert {"1", "10", "100", "1000"} <= set(re.findall(r">([^<>]*)</text>", logarithmic))

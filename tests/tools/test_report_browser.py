"""The report in a real browser, from disk, without a network: headless Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="needs the extra evaluate")
pytest.importorskip("jinja2", reason="needs the extra evaluate")
pytest.importorskip("selenium", reason="needs the extra test")

import browser
from report_helpers import FIGURES, HOSTILE, REPORT
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from crawl4llm.tools.evaluate.report import write_report

PLOT_LETTERS, PLOT_WIDTH = 10, 360
"""Points of the font in plots, and of their width."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    write_report(REPORT, folder)
    return folder


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser.chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, chromium: Chrome, report: Path) -> Iterator[Chrome]:
    """The report, opened as a reader whose system is set to light or dark would; without a word on the console."""
    see(chromium, request.param)
    chromium.get((report / "report.html").as_uri())
    yield chromium
    assert console(chromium) == []
    assert chromium.execute_script("return typeof hacked") == "undefined"


def see(chromium: Chrome, scheme: str) -> None:
    """Set the system's colours."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def console(chromium: Any) -> list[dict[str, Any]]:
    """What the browser's console shows since this was last asked."""
    messages: list[dict[str, Any]] = chromium.get_log("browser")
    return messages


def scheme_of(chromium: Chrome) -> str:
    dark = chromium.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches")
    return "dark" if dark else "light"


def colour_of(chromium: Chrome, selector: str, part: str) -> str:
    """A colour as it is shown, as six hexadecimal digits."""
    script = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    shown = chromium.execute_script(script, selector, part)
    return "#" + "".join(f"{int(number):02x}" for number in shown.removeprefix("rgb(").rstrip(")").split(", "))


COLOURS = """
const drawing = document.querySelector(arguments[0]);
const canvas = document.createElement("canvas");
[canvas.width, canvas.height] = [drawing.naturalWidth, drawing.naturalHeight];
const context = canvas.getContext("2d");
context.drawImage(drawing, 0, 0);
const seen = new Set();
const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
for (let at = 0; at < data.length; at += 4) seen.add(data[at] * 65536 + data[at + 1] * 256 + data[at + 2]);
return [drawing.getBoundingClientRect().width, drawing.getBoundingClientRect().height, seen.size];
"""


def unfold(chromium: Chrome, what: str = "details.part") -> None:
    """Open what is folded."""
    chromium.execute_script("for (const folded of document.querySelectorAll(arguments[0])) folded.open = true", what)


def column(chromium: Chrome, number: int) -> list[str]:
    """The texts of a column of the table of runs, top to bottom."""
    rows = chromium.find_elements(By.CSS_SELECTOR, "#section-harvest tbody tr")
    return [row.find_elements(By.XPATH, "./*")[number].text for row in rows]


def test_plots_are_drawn(page: Chrome) -> None:
    """What a reader sees has ink in it: lines or dots with their edges, and text."""
    unfold(page)
    for figure in FIGURES:
        width, height, colours = page.execute_script(COLOURS, f"#section-{figure.id} .plot")
        assert width > 400
        assert height > 200
        assert colours > 10


def test_colours_follow_the_reader(page: Chrome) -> None:
    """Of the page; drawings are on white."""
    light = scheme_of(page) == "light"
    assert (colour_of(page, "body", "color") < "#808080") == light
    assert (colour_of(page, "#section-recall", "backgroundColor") > "#808080") == light


def test_tables_sort_on_click(page: Chrome) -> None:
    heading = page.find_elements(By.CSS_SELECTOR, "#section-harvest thead th")[1]
    button = heading.find_element(By.TAG_NAME, "button")
    assert column(page, 1) == ["6,500", "21,599", "100", "4,400"]
    assert heading.get_attribute("aria-sort") is None
    button.click()
    assert column(page, 1) == ["100", "4,400", "6,500", "21,599"]
    assert heading.get_attribute("aria-sort") == "ascending"
    button.click()
    assert column(page, 1) == ["21,599", "6,500", "4,400", "100"]
    assert heading.get_attribute("aria-sort") == "descending"


def test_undefined_values_come_last_either_way(page: Chrome) -> None:
    button = page.find_elements(By.CSS_SELECTOR, "#section-harvest thead button")[2]
    button.click()
    assert column(page, 2) == ["0.2311", "0.3000", "\u2013", "\u2013"]
    button.click()
    assert column(page, 2) == ["0.3000", "0.2311", "\u2013", "\u2013"]


def test_names_sort_by_their_numbers_with_the_keyboard(page: Chrome) -> None:
    first, second = page.find_elements(By.CSS_SELECTOR, "#section-harvest thead button")[:2]
    second.send_keys(Keys.SPACE)
    first.send_keys(Keys.ENTER)
    names = column(page, 0)
    assert [name for name in names if name.startswith("run")] == ["run 1", "run 9", "run 10"]
    headings = page.find_elements(By.CSS_SELECTOR, "#section-harvest thead th")
    assert [heading.get_attribute("aria-sort") for heading in headings] == ["ascending", None, None, None]


def test_series_in_numbers_open_and_sort(page: Chrome) -> None:
    page.find_element(By.CSS_SELECTOR, "#section-recall summary").click()
    page.find_elements(By.CSS_SELECTOR, "#section-recall thead button")[1].click()
    points = page.find_elements(By.CSS_SELECTOR, "#section-recall tbody td:nth-child(2)")
    assert [cell.text for cell in points] == ["0", "1", "1", "2", "3", "4"]


def test_names_are_only_text(page: Chrome) -> None:
    readable = HOSTILE.replace("\x00", "\ufffd").replace("\udc80", "\ufffd")
    assert page.title.endswith(readable)
    assert readable in column(page, 0)
    assert page.find_element(By.CSS_SELECTOR, "#section-cloud figcaption").text == readable
    assert page.find_elements(By.CSS_SELECTOR, "img:not(.plot), main script") == []
    assert len(page.find_elements(By.TAG_NAME, "script")) == 1


def test_runs_side_by_side(page: Chrome) -> None:
    def keys() -> dict[str, bool]:
        rows = page.find_elements(By.CSS_SELECTOR, "#runs tbody tr")
        return {row.text.split()[0]: "differs" in row.text for row in rows if row.is_displayed()}

    assert keys() == {}
    page.find_element(By.CSS_SELECTOR, "#runs > summary").click()
    assert keys() == {"extra": True, "policy": True, "settings.CRAWL_SEED": False, "settings.WARC_PREFIX": False}
    page.find_element(By.ID, "only-differences").click()
    assert keys() == {"extra": True, "policy": True}


def test_every_table_and_plot_has_a_name(page: Chrome) -> None:
    """What a screen reader calls them, by the browser's own accessibility tree."""
    unfold(page)
    nodes = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    plots = [name for role, name in named if role in {"image", "img"}]
    assert [name[:8] for name in plots] == [figure.title[:8] for figure in FIGURES]
    tables = [name for role, name in named if role == "table"]
    assert len(tables) == 3
    assert all(tables)


def test_nothing_is_loaded(page: Chrome) -> None:
    assert page.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_links_lead_to_files_that_are_there(page: Chrome, report: Path) -> None:
    links = [str(link.get_attribute("href")) for link in page.find_elements(By.CSS_SELECTOR, "a")]
    files = {link for link in links if "#" not in link}
    written = {path.as_uri() for path in report.rglob("*") if path.parent != report and path.is_file()}
    assert files == written
    for link in set(links) - files:
        assert page.find_elements(By.ID, link.partition("#")[2])


def test_the_verdict_is_on_top_and_later_parts_are_folded(page: Chrome) -> None:
    assert page.find_element(By.CSS_SELECTOR, ".verdict p").text == "influence is best: 2.65 times as much."
    parts = page.find_elements(By.CSS_SELECTOR, "details.part")
    assert [part.get_attribute("open") is not None for part in parts] == [True, False, False]
    assert page.find_element(By.ID, "section-cloud").is_displayed()
    assert not page.find_element(By.ID, "section-no-rows").is_displayed()


@pytest.mark.parametrize("width", [1300, 390])
def test_axe_finds_nothing_serious_and_a_telephone_can_show_it(page: Chrome, width: int) -> None:
    axe = pytest.importorskip("selenium_axe_python", reason="needs the extra test").Axe(page)
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        unfold(page, "details")
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
        widths = "return [...document.querySelectorAll('.plot')].map((plot) => plot.getBoundingClientRect().width)"
        assert min(page.execute_script(widths)) / PLOT_WIDTH * PLOT_LETTERS >= 9
        page.set_script_timeout(120)  # on a busy machine
        axe.inject()
        found = axe.run()["violations"]
        serious = [one for one in found if one["impact"] in {"serious", "critical"}]
        assert [(one["id"], one["nodes"][0]["html"][:200]) for one in serious] == []
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

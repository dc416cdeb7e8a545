"""The site of the documentation in headless Chromium, as `make docs` has built it: `make docs-check`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_helpers import PROJECT

pytest.importorskip("selenium", reason="needs the extra test")
pytest.importorskip("selenium_axe_python", reason="needs the extra test")

import browser
from selenium.webdriver import Chrome
from selenium_axe_python import Axe

SITE = PROJECT / "build" / "docs"
FOREIGN = "return performance.getEntriesByType('resource').map(e => e.name).filter(name => !name.startsWith('file:'))"
WIDER = "return document.documentElement.scrollWidth - window.innerWidth"
OVERFLOWING = """
return [...document.querySelectorAll('article pre, article .table-wrapper, article img')]
  .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent.trim().slice(0, 80))"""
TITLES = """
return [...document.querySelectorAll(`${arguments[0]} a.internal`)]
  .map(one => [one.pathname, one.textContent.trim()])"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="needs `make docs`"),
]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser.chromium(tmp_path_factory.mktemp("profile")) as driver:
        driver.set_script_timeout(120)
        yield driver


def pages() -> list[Path]:
    return sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)


def test_axe_finds_no_serious_problem(chromium: Chrome) -> None:
    found = set()
    for page in pages():
        chromium.get(page.as_uri())
        axe = Axe(chromium)
        axe.inject()
        for theme in ("light", "dark"):
            chromium.execute_script("document.body.dataset.theme = arguments[0]", theme)
            for problem in axe.run()["violations"]:
                if problem["impact"] in {"serious", "critical"}:
                    nodes = [node["html"][:150] for node in problem["nodes"]]
                    found.add(f"{page.name} ({theme}): {problem['id']}: {len(nodes)}, such as {nodes[0]}")
    assert not found, "\n".join(sorted(found))


def test_pages_fit_a_phone_and_ask_nobody(chromium: Chrome) -> None:
    chromium.set_window_size(390, 844)
    for page in pages():
        chromium.get(page.as_uri())
        assert chromium.execute_script(FOREIGN) == [], page.name
        assert chromium.execute_script(WIDER) <= 0, page.name


def test_pages_fit_a_window_of_1280_pixels(chromium: Chrome) -> None:
    """Neither the page nor a table or a block of code in it scrolls sideways."""
    chromium.set_window_size(1280, 900)
    found = set()
    for page in pages():
        chromium.get(page.as_uri())
        assert chromium.execute_script(WIDER) <= 0, page.name
        found |= {f"{page.name}: {text}" for text in chromium.execute_script(OVERFLOWING)}
    assert not found, "\n".join(sorted(found))


def test_options_keep_their_dashes_and_code_can_be_copied(chromium: Chrome) -> None:
    chromium.get((SITE / "commands.html").as_uri())
    text = chromium.find_element("tag name", "body").text
    assert "--out DIR" in text
    assert "\u2013out" not in text
    chromium.get((SITE / "install.html").as_uri())
    assert chromium.find_elements("css selector", "div.highlight button.copybtn")


def test_the_sidebar_has_the_titles_of_the_index(chromium: Chrome) -> None:
    chromium.get((SITE / "index.html").as_uri())
    sidebar, index = (chromium.execute_script(TITLES, where) for where in (".sidebar-tree", "article section ul"))
    assert sidebar == index
    assert len(index) > 40

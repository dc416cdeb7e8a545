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

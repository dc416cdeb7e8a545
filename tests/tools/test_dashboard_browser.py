"""The dashboard in a real browser, headless Chromium: of a crawl that runs, is killed, and of hostile files.

With ``SCREENSHOTS=1`` in the environment, as ``make figures`` sets it, it also takes the pictures of docs/dashboard.md.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import begin

pytest.importorskip("selenium", reason="needs the extra test")
pytest.importorskip("selenium_axe_python", reason="needs the extra test")

import browser
from crawl_helpers import PROJECT, Web, crawl_args
from dashboard_helpers import dashboard
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium_axe_python import Axe

RUNS: dict[str, Any] = {
    **{"CRAWL_MAX_PAGES": 1400, "CRAWL_SEEDS": 30, "CRAWL_BATCH_SIZE": 2, "QUALITY_THRESHOLD": 0.5},
    **{"SIMULATION_TEXT": "extracted", "SCORING_WORKERS": 1, "COMMIT_INTERVAL_PAGES": 2, "FRONTIER_MAX_URLS": 300},
}
DESKTOP, PHONE = (1300, 900), (390, 844)
PICTURES = PROJECT / "docs/images"
OF_JOBDIR = ("scores", "owners", "aside")
"""Sections that need a JOBDIR."""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser.chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def killed(demo_web: Web, chromium: Chrome, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The dashboard of the JOBDIR of a crawl that was killed while it was looked at; the page followed it."""
    folder = tmp_path_factory.mktemp("crawls", numbered=False)
    web = None if os.environ.get("SCREENSHOTS") else demo_web  # pictures show the project's own demo web
    args = crawl_args(web, folder / "0001", **RUNS, JOBDIR=folder / "job")
    process = begin(args, silent=["out", "err"])
    try:
        wait_for(lambda: (folder / "0001/series.jsonl").exists() and (folder / "job/job.json").exists())
        with dashboard(folder / "job") as url:
            see(chromium, url)
            wait_for(lambda: state(chromium) == "Running")
            wait_for(lambda: crawled(chromium) > 0)
            before = crawled(chromium)
            wait_for(lambda: crawled(chromium) > before)
            if os.environ.get("SCREENSHOTS"):
                wait_for(lambda: crawled(chromium) > 700)
                take_pictures(chromium, url)
            assert process.poll() is None, "it was looked at while it ran"
            process.kill()
            wait_for(lambda: state(chromium).startswith("Not running: stopped or killed"))
            yield url
    finally:
        process.kill()
        process.wait()


def take_pictures(chromium: Chrome, url: str) -> None:
    """Make the pictures of the documentation."""
    PICTURES.mkdir(exist_ok=True)
    for name, scheme, size in (("light", "light", DESKTOP), ("phone", "dark", PHONE)):
        see(chromium, url, scheme, size)
        wait_for(lambda: chromium.find_elements(By.CSS_SELECTOR, "#owners tbody tr"))
        clip = {"x": 0, "y": 0, "width": size[0], "height": 1.5 * size[1], "scale": 1}
        taken = chromium.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
        (PICTURES / f"dashboard-{name}.png").write_bytes(base64.b64decode(taken["data"]))


def wait_for(what: Callable[[], Any]) -> None:
    end = time.monotonic() + 600
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def see(chromium: Chrome, url: str, scheme: str = "light", size: tuple[int, int] = DESKTOP) -> None:
    """Open the page as somebody does whose system and screen are such; wait until it is drawn."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    chromium.get(url)
    wait_for(lambda: state(chromium) not in {"", "Connecting"})


def state(chromium: Chrome) -> str:
    return chromium.find_element(By.ID, "state").text


def crawled(chromium: Chrome) -> int:
    script = "return document.querySelector('#now dd')?.textContent ?? '0'"
    return int(chromium.execute_script(script).replace(",", ""))


def console(chromium: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = chromium.get_log("browser")
    return messages


def serious(chromium: Chrome) -> list[Any]:
    """What axe-core finds that is serious or worse."""
    chromium.set_script_timeout(120)
    axe = Axe(chromium)
    axe.inject()
    found = axe.run()["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in {"serious", "critical"}]


@pytest.mark.parametrize(("scheme", "size"), [("light", DESKTOP), ("dark", DESKTOP), ("light", PHONE), ("dark", PHONE)])
def test_all_is_shown_and_axe_finds_nothing_serious(
    killed: str, chromium: Chrome, scheme: str, size: tuple[int, int]
) -> None:
    see(chromium, killed, scheme, size)
    wait_for(lambda: chromium.find_elements(By.CSS_SELECTOR, "#owners tbody tr"))
    curves: Any = chromium.execute_script(
        "return [...document.querySelectorAll('#charts section:not([hidden])')].map((section) => "
        "[section.querySelector('h2').textContent, section.querySelector('.curve[d*=L]') !== null, "
        "section.getBoundingClientRect().width])"
    )
    assert [name for name, drawn, _ in curves if drawn][:4] == ["Pages a second", "Influence", "Documents", "Memory"]
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= size[0]
    dark = chromium.execute_script("return getComputedStyle(document.documentElement).backgroundColor")
    assert dark == {"light": "rgb(244, 246, 248)", "dark": "rgb(12, 14, 17)"}[scheme]
    assert len(chromium.find_elements(By.CSS_SELECTOR, "#best li")) == 10
    chromium.find_element(By.TAG_NAME, "summary").click()
    chromium.find_element(By.CSS_SELECTOR, "#best button").click()
    assert serious(chromium) == []
    assert console(chromium) == []
    assert not chromium.find_element(By.ID, "jobdir").is_displayed()
    assert [name for name in OF_JOBDIR if not chromium.find_element(By.ID, name).is_displayed()] == []


def test_a_chart_reads_out_the_point_under_the_pointer(killed: str, chromium: Chrome) -> None:
    """No slider is drawn: the line in the chart follows the pointer."""
    see(chromium, killed)
    wait_for(lambda: chromium.find_elements(By.CSS_SELECTOR, "#charts .curve"))
    slider = chromium.find_element(By.CSS_SELECTOR, "#charts input[type=range]")
    assert slider.value_of_css_property("opacity") == "0"
    plot = chromium.find_element(By.CSS_SELECTOR, "#charts .plot")
    said = chromium.find_element(By.CSS_SELECTOR, "#charts output")
    places = []
    for share in (-0.3, 0.0, 0.3):
        ActionChains(chromium).move_to_element_with_offset(plot, round(share * plot.size["width"]), 0).perform()
        script = "return arguments[0].querySelector('.cursor').getBoundingClientRect().x"
        line: Any = chromium.execute_script(script, plot)
        places.append((line, said.text))
    assert places == sorted(places, key=lambda place: place[0])
    assert len({text for _, text in places}) == 3


def test_bars_compare_rows_and_one_row_has_none(killed: str, chromium: Chrome) -> None:
    see(chromium, killed)
    wait_for(lambda: chromium.find_elements(By.CSS_SELECTOR, "#owners tbody tr"))
    for name in (*OF_JOBDIR, "waits", "refusals", "ended"):
        rows = chromium.find_elements(By.CSS_SELECTOR, f"#{name} tbody tr")
        bars = chromium.find_elements(By.CSS_SELECTOR, f"#{name} .share span")
        assert len(bars) == (len(rows) if len(rows) > 1 else 0)


def test_by_keyboard(killed: str, chromium: Chrome) -> None:
    see(chromium, killed)
    wait_for(lambda: chromium.find_elements(By.CSS_SELECTOR, "#best li"))

    def press(key: str) -> Any:
        chromium.switch_to.active_element.send_keys(key)
        return chromium.switch_to.active_element

    def colour() -> Any:
        return chromium.execute_script("return getComputedStyle(document.body).color")

    body = chromium.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert chromium.switch_to.active_element.get_attribute("class") == "skip"
    theme = press(Keys.TAB)
    assert theme.text == "Dark colours"
    light = colour()
    press(Keys.ENTER)
    assert (theme.text, colour() != light) == ("Light colours", True)

    place = press(Keys.TAB)
    before = place.get_attribute("aria-valuetext")
    press(Keys.ARROW_LEFT)
    assert place.get_attribute("aria-valuetext") != before
    said = chromium.find_element(By.CSS_SELECTOR, "#charts output")
    assert (said.text, said.get_attribute("aria-live")) == (place.get_attribute("aria-valuetext"), "polite")
    assert press(Keys.TAB).tag_name == "summary"
    press(Keys.ENTER)
    points = int(str(place.get_attribute("max"))) + 1
    wait_for(lambda: len(chromium.find_elements(By.CSS_SELECTOR, "#charts details tbody tr")) == points)

    button = chromium.find_element(By.CSS_SELECTOR, "#best button")
    button.send_keys(Keys.ENTER)
    text = chromium.find_element(By.CSS_SELECTOR, "#best .text")
    wait_for(lambda: len(text.text) > 100)
    assert button.get_attribute("aria-expanded") == "true"
    assert not text.text.startswith("No text")


HOSTILE = (
    "javascript:hacked=1",
    "https://a.example/<img src=x onerror=hacked=1>",
    'http://b.example/"><script>hacked=1</script>',
    "data:text/html,<script>hacked=1</script>",
    "http://\u202ec.example/",
)


def test_what_pages_say_is_only_text(chromium: Chrome, tmp_path: Path) -> None:
    """A folder that somebody made up, without a series."""
    run = tmp_path / "<b>run"
    run.mkdir()
    lines = [
        {"order": place, "id": url, "url": url, "influence": 0.5, "depth": 0, "visited": 9}
        for place, url in enumerate(HOSTILE)
    ]
    (run / "crawl.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (run / "settings.json").write_text(json.dumps({"policy": "<img src=x onerror=hacked=1>"}))
    (run / "stats.json").write_text(json.dumps({"finish_reason": "<script>hacked=1</script>"}))
    with dashboard(run) as url:
        see(chromium, url)
        wait_for(lambda: chromium.find_elements(By.CSS_SELECTOR, "#best li"))
        shown = [item.text for item in chromium.find_elements(By.CSS_SELECTOR, "#best li bdi")]
        assert shown == [one.replace("\u202e", "\ufffd") for one in HOSTILE]
        links = chromium.find_elements(By.CSS_SELECTOR, "#best a")
        assert [link.get_attribute("rel") for link in links] == ["noreferrer noopener"] * len(links)
        assert len(links) in {2, 3}  # a host name with U+FFFD may be no URL to the browser
        assert "<img src=x" in browser.text_of(chromium)
        chromium.find_element(By.CSS_SELECTOR, "#best button").click()
        wait_for(lambda: "No text" in browser.text_of(chromium))
        assert chromium.find_elements(By.CSS_SELECTOR, "img, main script, iframe") == []
        assert chromium.execute_script("return typeof hacked") == "undefined"
        assert console(chromium) == []
        assert "start the dashboard with the crawl's JOBDIR" in chromium.find_element(By.ID, "jobdir").text
        assert [name for name in OF_JOBDIR if chromium.find_element(By.ID, name).is_displayed()] == []
        assert serious(chromium) == []

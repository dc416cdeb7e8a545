"""Headless Chromium for tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

SWITCHES = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1300,900",
)


def installed(*names: str) -> str:
    """Path of the first of some programs that is installed; the test is skipped where none is."""
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(f"needs one of {', '.join(names)}; on Debian: apt-get install chromium chromium-driver")
    return path


@contextmanager
def chromium(profile: Path) -> Iterator[Chrome]:
    """A browser that keeps its console's messages."""
    options = ChromeOptions()
    options.binary_location = installed("chromium", "chromium-browser", "google-chrome")
    switches = [*SWITCHES, f"--user-data-dir={profile}"]
    if os.getuid() == 0:
        switches.append("--no-sandbox")  # Chromium's sandbox does not run as root
    for switch in switches:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(installed("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def text_of(browser: Chrome) -> str:
    """The text that a page shows, on one line."""
    return " ".join(browser.find_element(By.TAG_NAME, "body").text.split())

"""Scrapy's own commands in a project of ours: they get pages of the corpus, or are refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from crawl_helpers import Web, crawl_log, error_of, scrapy
from finished_runs import FinishedRuns

SPIDER = """\
import scrapy

class Mine(scrapy.Spider):
    name = "mine"
    start_urls = ["{url}", "https://nowhere.example/"]

    def parse(self, response):
        \"\"\"
        @url {url}
        @returns items 1 1
        \"\"\"
        yield {{"url": response.url, "title": response.css("title::text").get()}}
"""


@pytest.fixture(scope="module")
def crawled(finished_runs: FinishedRuns) -> Path:
    """A crawl, whose archive is a corpus in which URLs are found."""
    return finished_runs.output("influence")


def settings(corpus: Path, model: Path) -> list[str]:
    return ["-s", f"CORPUS={corpus}", "-s", f"SCORER_MODEL={model}"]


@pytest.mark.parametrize("named", ["id", "url"])
@pytest.mark.parametrize("kind", ["tree", "archive"])
def test_a_page_of_the_corpus(kind: str, named: str, demo_web: Web, crawled: Path) -> None:
    corpus = settings(demo_web.corpus if kind == "tree" else crawled, demo_web.model)
    line = crawl_log(crawled)[3]
    key = line["id"] if (kind, named) == ("tree", "id") else line["url"]
    if (kind, named) == ("tree", "url"):
        assert scrapy("corpus", "index", "--jobs", "1", *corpus).returncode == 0
    fetched = scrapy("fetch", key, *corpus)
    assert (fetched.returncode, "<html" in fetched.stdout) == (0, True), fetched.stderr
    assert "Traceback" not in fetched.stderr
    shown = scrapy("shell", "-c", "response.status, response.url, bool(response.css('title'))", key, *corpus)
    assert (shown.returncode, shown.stdout.strip()) == (0, f"(200, '{line['url']}', True)"), shown.stderr
    other = crawl_log(crawled)[5]["url"]
    again = scrapy("shell", "-c", f"fetch('{other}') or response.url", key, *corpus)
    if named == "url" or kind == "archive":
        assert (again.returncode, again.stdout.strip()) == (0, other), again.stderr


def test_a_browser_shows_it(demo_web: Web, crawled: Path, tmp_path: Path) -> None:
    """One that notes what it was to open."""
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\ncp "${{1#file://}}" {tmp_path}/shown.html\n')
    browser.chmod(0o755)
    key = crawl_log(crawled)[0]["id"]
    done = scrapy("view", key, *settings(demo_web.corpus, demo_web.model), env={"BROWSER": f"{browser} %s"})
    assert done.returncode == 0, done.stderr
    assert "<title" in (tmp_path / "shown.html").read_text()


def test_spiders_of_ones_own(demo_web: Web, crawled: Path, tmp_path: Path) -> None:
    """All that they ask for comes from the corpus, by `runspider`, `crawl`, `parse` and `check`."""
    url = crawl_log(crawled)[0]["url"]
    (tmp_path / "own").mkdir()
    (tmp_path / "own/mine.py").write_text(SPIDER.format(url=url))
    corpus = settings(crawled, demo_web.model)
    ran = scrapy("runspider", str(tmp_path / "own/mine.py"), "-O", str(tmp_path / "items.json"), *corpus)
    assert ran.returncode == 0, ran.stderr
    (item,) = json.loads((tmp_path / "items.json").read_text())
    assert item["url"] == url
    assert item["title"]
    assert "404 https://nowhere.example/" in ran.stderr
    project = {"PYTHONPATH": str(tmp_path / "own")}
    both = [*corpus, "-s", "SPIDER_MODULES=crawl4llm.spiders,mine"]
    crawled_too = scrapy("crawl", "mine", "-O", str(tmp_path / "again.json"), *both, env=project)
    assert crawled_too.returncode == 0, crawled_too.stderr
    assert json.loads((tmp_path / "again.json").read_text()) == [item]
    parsed = scrapy("parse", "--spider", "mine", url, *both, env=project)
    assert (parsed.returncode, item["title"] in parsed.stdout) == (0, True), parsed.stderr
    checked = scrapy("check", "mine", *both, env=project)
    assert (checked.returncode, "Ran 1 contract" in checked.stderr) == (0, True), checked.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fetch", "clueweb22-en0000-99-99999"], "the corpus does not hold clueweb22-en0000-99-99999"),
        (["shell", "https://nowhere.example/"], "corpus"),
        (["view", "nonsense"], "the corpus holds no document at nonsense"),
        (["fetch", "--spider", "influence", "clueweb22-en0000-00-00000"], "takes pages of its own crawl alone"),
        (["parse", "--spider", "influence", "clueweb22-en0000-00-00000"], "takes pages of its own crawl alone"),
        (["bench"], "scrapy bench measures Scrapy alone"),
        (["fetch", "x", "-s", "CORPUS="], "CORPUS is not set"),
        (["fetch", "x", "-s", "CORPUS=/nowhere"], "/nowhere"),
        (["crawl", "nobody"], "there is no spider nobody"),
    ],
    ids=lambda given: " ".join(given[:2]) if isinstance(given, list) else "",
)
def test_what_is_refused(words: list[str], said: str, demo_web: Web) -> None:
    refused = scrapy(*words, *([] if "-s" in words else settings(demo_web.corpus, demo_web.model)))
    assert said in error_of(refused)
    assert refused.stderr.count("\n") == 1, refused.stderr


@pytest.mark.parametrize("name", ["fetch", "view", "shell", "parse", "runspider", "crawl", "bench"])
def test_the_live_web_is_asked_by_crawls_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SPIDER.format(url="https://nowhere.example/"))
    spider = {"runspider": [str(tmp_path / "mine.py")], "crawl": ["mine"], "parse": ["--spider", "mine"]}.get(name, [])
    url = [] if name in ("runspider", "crawl", "bench") else ["https://nowhere.example/"]
    modules = ["-s", "SPIDER_MODULES=crawl4llm.spiders,mine"]
    env = {"SCRAPY_PROJECT": "live", "PYTHONPATH": str(tmp_path)}
    refused = scrapy(name, *spider, *url, *modules, "-s", "USER_AGENT=x (+https://example.org)", env=env)
    assert ("CORPUS=OUTPUT_DIR" in error_of(refused)) == (name != "bench")
    assert refused.stderr.count("\n") == 1, refused.stderr


@pytest.mark.parametrize("profile", ["default", "live"])
@pytest.mark.parametrize(
    "words", [["list"], ["check"], ["settings", "--get", "BOT_NAME"], ["version"], ["genspider", "-l"]], ids=" ".join
)
def test_what_asks_for_no_page_works(words: list[str], profile: str) -> None:
    done = scrapy(*words, env={"SCRAPY_PROJECT": profile})
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_new_spiders_and_projects(tmp_path: Path) -> None:
    for words in (["genspider", "mine", "example.org"], ["startproject", "other"]):
        (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = crawl4llm.profiles.simulation\n")
        done = scrapy(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine.py").is_file()
    assert (tmp_path / "other/scrapy.cfg").is_file()

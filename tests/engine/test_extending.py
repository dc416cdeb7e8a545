"""Fetchers, components and receivers of signals from elsewhere, as docs/extending.md has them, in real crawls."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from addon_site import serve
from crawl_helpers import PROJECT, Web, crawl, crawl_args, crawl_log, error_of, scrapy, stats
from docs_helpers import blocks
from live_helpers import crawl_live, text_page
from onlookers import seen
from owner_sites import serve_owners
from scrapy.addons import AddonManager
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from crawl4llm import open_run

CODE = [
    *(block.text for block in blocks(PROJECT / "docs/extending.md", "python")),
    *(path.read_text() for path in (PROJECT / "docs/examples").glob("*.py")),
]
PAGES, N = 40, 25
LINK = '<p><a href="/page-{0}">page {0}</a></p>'
SIMULATION, LIVE = ("crawl4llm.engine.components.SimulationComponents", "crawl4llm.engine.components.LiveComponents")
ONLOOKERS = {
    "EXTENSIONS": '{"onlookers.Extension": 0, "means.Means": 0}',
    "DOWNLOADER_MIDDLEWARES": '{"onlookers.Middleware": -1}',
}


def code_with(text: str) -> str:
    """The one block or example of the guide that has a text."""
    (found,) = [block for block in CODE if text in block]
    return found


def html(number: int) -> bytes:
    links = [LINK.format((number * 3 + step) % PAGES) for step in (1, 2, 3)] + ['<a href="/missing">gone</a>']
    return f"<html><body><h1>{number}</h1><p>{'word ' * (20 + number)}</p>{''.join(links)}</body></html>".encode()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the fetcher of the guide, its settings, and pages for it."""
    monkeypatch.setenv("SEEN", str(tmp_path))
    monkeypatch.delenv("SCRAPY_PROJECT", raising=False)
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = own\nplain = settings.simulation\n")
    (tmp_path / "sqlite_fetcher.py").write_text(code_with("class SqliteFetcher"))
    (tmp_path / "means.py").write_text(code_with("class Means"))
    (tmp_path / "own.py").write_text(code_with("CORPUS = None"))
    (tmp_path / "seeds.txt").write_text("http://a.example/page-0\n")
    with sqlite3.connect(tmp_path / "pages.sqlite") as pages:
        pages.execute("CREATE TABLE pages (url TEXT PRIMARY KEY, date TEXT, html BLOB)")
        rows = [(f"http://a.example/page-{one}", "2026-01-02T03:04:05Z", html(one)) for one in range(PAGES)]
        pages.executemany("INSERT INTO pages VALUES (?, ?, ?)", rows)
    return tmp_path


def run(project: Path, *args: str, **env: str) -> tuple[str, str]:
    """Run a command in the project; return what it said."""
    result = scrapy(*args, cwd=project, env={"PYTHONPATH": str(project), **env})
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


def test_a_crawl_by_the_fetcher_of_the_guide(project: Path) -> None:
    args = crawl_args(None, project / "out", project / "seeds.txt", SCORER="length", CRAWL_MAX_PAGES=N)
    run(project, *args)
    assert [line["order"] for line in crawl_log(project / "out")] == list(range(N))
    (failure,) = [json.loads(line) for line in (project / "out/failures.jsonl").read_text().splitlines()]
    assert (failure["id"], failure["reason"]) == ("http://a.example/missing", "http_404")
    archived = {page.url: page.html for page in open_run(project / "out").pages()}
    assert archived == {line["url"]: html(int(line["url"].rpartition("-")[2])) for line in crawl_log(project / "out")}
    assert len(archived) == N
    assert "sound: " in run(project, "archive", "check", str(project / "out"))[0]
    again = crawl_args(None, project / "again", project / "seeds.txt", SCORER="length", CRAWL_MAX_PAGES=N)
    run(project, *again)
    assert (project / "again/crawl.jsonl").read_bytes() == (project / "out/crawl.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["crawl", "influence", "-s", "PAGES_DB=none.sqlite", "-a", "seeds=seeds.txt"], "PAGES_DB none.sqlite is no"),
        (
            ["crawl", "influence", "-s", "URL_POLICY=influence", "-a", "seeds=seeds.txt"],
            "URL_POLICY influence ",
        ),
        (["fetch", "http://a.example/page-0"], "SqliteWeb serves `crawl influence` only"),
        (["shell"], "SqliteWeb serves `crawl influence` only"),
    ],
)
def test_what_a_fetcher_cannot_do_is_one_line(args: Sequence[str], complaint: str, project: Path) -> None:
    result = scrapy(*args, "-s", "SCORER=length", cwd=project, env={"PYTHONPATH": str(project)})
    assert error_of(result).startswith(complaint)


def test_two_fetchers_are_refused(project: Path) -> None:
    both = ["-s", 'DOWNLOADER_MIDDLEWARES={"sqlite_fetcher.SqliteFetcher": 5}']
    result = scrapy("crawl", "influence", *both, cwd=project, env={"PYTHONPATH": str(project)})
    names = "simulate.middleware.SimulationMiddleware and sqlite_fetcher.SqliteFetcher"
    assert error_of(result).startswith(f"DOWNLOADER_MIDDLEWARES: {names} fetch pages, and one may")


def test_components_of_a_project_come_beside_those_of_the_profile(demo_web: Web, project: Path) -> None:
    """They are in its settings, or on the command line; the crawl is the same, and one of ours can be switched off."""
    given = {"CRAWL_MAX_PAGES": 110, "CRAWL_BATCH_SIZE": 20, "CRAWL_SEEDS": 10}
    assert crawl(demo_web, project / "plain", **given).returncode == 0
    own = "".join(f"{name} = {json.loads(value)}\n" for name, value in ONLOOKERS.items())
    (project / "own.py").write_text(f"from settings.simulation import *\n{own}")
    run(project, *crawl_args(demo_web, project / "file", **given))
    assert len(seen("requests")) == len(seen("responses")) == 110
    assert seen("items") == []
    beside = '{"crawl4llm.engine.series.Series": null}'
    run(project, *crawl_args(demo_web, project / "line", **given, EXTENSIONS=beside))
    for name in ("file", "line"):
        assert (project / name / "crawl.jsonl").read_bytes() == (project / "plain/crawl.jsonl").read_bytes()
    assert [(project / name / "series.jsonl").exists() for name in ("plain", "file", "line")] == [True, True, False]
    rows = [line.split(",") for line in (project / "means.csv").read_text().splitlines()]
    figures = stats(project / "file")
    assert [int(row[0]) for row in rows] == list(range(1, figures["iterations"] + 1))
    assert (int(rows[-1][1]), float(rows[-1][2])) == (110, figures["influence/mean"])
    assert [int(row[1]) for row in rows][:2] == [10, 30]


def test_components_of_a_spider_come_beside_those_of_the_profile(demo_web: Web, project: Path) -> None:
    """A spider of one's own reaches no network, whatever settings it brings."""
    (project / "mine.py").write_text(
        "import scrapy\n"
        "class Mine(scrapy.Spider):\n"
        "    name = 'mine'\n"
        "    custom_settings = {'DOWNLOADER_MIDDLEWARES': {'onlookers.Middleware': -1}}\n"
        "    start_urls = ['http://127.0.0.1:9/']\n"
    )
    corpus = ["-s", f"CORPUS={demo_web.corpus}", "-s", f"SCORER_MODEL={demo_web.model}"]
    _, said = run(project, "runspider", "mine.py", *corpus, SCRAPY_PROJECT="plain")
    assert len(seen("requests")) == 1
    assert "127.0.0.1:9" in said
    assert "Connection refused" not in said


def test_components_beside_those_of_a_live_crawl(project: Path, tmp_path: Path) -> None:
    """It is as polite, archives as much, and tells them of its end."""
    pages = {f"/page-{one}": text_page(one, [f"/page-{one + 1}"]) for one in range(6)}
    slow = {"/page-0": text_page(0, ["/page-1", "/slow"]), "/slow": text_page(7, [])._replace(seconds=30.0)}
    given = {"SHUTDOWN_GRACE": 0.3, "CRAWL_BATCH_SIZE": 0, "JOBDIR": tmp_path / "job"}
    with serve({**pages, **slow}) as site:
        env = {"PYTHONPATH": str(project)}
        result = crawl_live([f"{site.url}/page-0"], tmp_path / "run", env, **{**ONLOOKERS, **given})
        assert result.returncode == 130, result.stderr
        assert site.asked[0].path == "/robots.txt"
    assert f"{site.url}/page-0" in seen("requests")
    assert seen("aborts") == ["one"]
    assert {line["url"] for line in crawl_log(tmp_path / "run")} <= set(seen("requests"))
    assert (tmp_path / "run/warc/index.cdxj").stat().st_size > 0
    assert list((tmp_path / "job/requests").iterdir())


@pytest.mark.parametrize("addon", [SIMULATION, LIVE])
def test_what_the_project_sets_itself_stays(addon: str) -> None:
    theirs = {"SCHEDULER": "their.Scheduler", "SPIDER_MIDDLEWARES_BASE": {"their.Middleware": 1}}
    settings = Settings({"ADDONS": {addon: 0}, **theirs})
    AddonManager.load_pre_crawler_settings(settings)
    assert settings["SCHEDULER"] == "their.Scheduler"
    assert dict(settings["SPIDER_MIDDLEWARES_BASE"]) == {"their.Middleware": 1}
    for name in ("EXTENSIONS", "DOWNLOADER_MIDDLEWARES"):
        assert settings.getpriority(name) == 0
        assert settings.get_component_priority_dict_with_base(name)
        assert all(load_object(path) for path in settings[f"{name}_BASE"])


def test_the_part_of_the_guide_in_two_lives(demo_web: Web, project: Path) -> None:
    (project / "host_quota.py").write_text(code_with("class HostQuota"))
    given = {"CRAWL_PARTS": "host_quota.HostQuota", "HOST_QUOTA": 3, "URL_POLICY": "random", "JOBDIR": project / "job"}
    first = crawl_args(demo_web, project / "out", CRAWL_SEEDS=30, CRAWL_MAX_PAGES=40, **given)
    run(project, *first, SCRAPY_PROJECT="plain")
    assert len(crawl_log(project / "out")) == 40
    said, _ = run(project, *first, "-s", "CRAWL_MAX_PAGES=4000", SCRAPY_PROJECT="plain")
    hosts = Counter(urlsplit(line["url"]).hostname for line in crawl_log(project / "out"))
    assert max(hosts.values()) == 3
    assert f"host quotas      {len(hosts):,} hosts" in said
    assert "(all that is left is of hosts that have given HOST_QUOTA documents)" in said
    more = "-s", "CRAWL_PARTS=", "-s", "CRAWL_MAX_PAGES=4000"
    refused = scrapy(*first, *more, cwd=project, env={"SCRAPY_PROJECT": "plain", "PYTHONPATH": str(project)})
    assert "CRAWL_PARTS" in error_of(refused)


def test_the_part_of_the_guide_in_a_live_crawl(project: Path) -> None:
    (project / "host_quota.py").write_text(code_with("class HostQuota"))
    given = {"CRAWL_PARTS": "host_quota.HostQuota", "HOST_QUOTA": 3, "CRAWL_BATCH_SIZE": 0, "DELAY_FACTOR": 0}
    with serve_owners(2) as sites:
        for site in sites:
            site.pages = {f"/{page}": text_page(page, [f"/{number}" for number in range(9)]) for page in range(9)}
        seeds = [f"{site.url}/0" for site in sites]
        env = {"PYTHONPATH": str(project)}
        for most in (2, 100):  # the second one goes on
            more = {**given, "CRAWL_MAX_PAGES": most, "JOBDIR": project / "job"}
            result = crawl_live(seeds, project / "out", env, **more)
            assert result.returncode == 0, result.stderr
        asked = [site.paths() for site in sites]
    assert "(all that is left is of hosts that have given HOST_QUOTA documents)" in result.stdout
    assert [len(paths) for paths in asked] == [3, 3]
    assert len(crawl_log(project / "out")) == 6

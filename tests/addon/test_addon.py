"""crawl4llm in someone else's Scrapy project, made by ``scrapy startproject``, on a real web server."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from addon_project import ADDON, Crawled, Project, crawl, scrapy
from addon_site import Answer, Asked, LengthScorer, page, serve
from crawl_helpers import PROJECT, begin
from documented import is_documented
from model_helpers import patched
from scrapy.settings import Settings, default_settings
from warcio.archiveiterator import ArchiveIterator

from crawl4llm.addon import Addon
from crawl4llm.addon.middlewares import LinkScoring, PageRecording
from crawl4llm.addon.run import OPTIONS, _read_options
from crawl4llm.base.errors import InputError
from crawl4llm.crawl.fetched_web import LiveCorpus
from crawl4llm.live.wire import WireHandler
from crawl4llm.scoring.rating import HtmlPage, PageRater, Rating, influence_task
from crawl4llm.scoring.text import EXTRACTORS
from crawl4llm.scoring.workers import PageTasks, PageWorkers

# -- order ------------------------------------------------------------------------------------------------------------


def tree() -> dict[str, Answer]:
    """A start page that links to a bad and a good page, each with children and grandchildren of its kind."""
    answers = {"/": page(0.5, ["/bad", "/good"])}
    for kind, goodness in (("bad", 0.0), ("good", 1.0)):
        answers[f"/{kind}"] = page(goodness, [f"/{kind}/a", f"/{kind}/b"])
        for child in "ab":
            answers[f"/{kind}/{child}"] = page(goodness, [f"/{kind}/{child}/1", f"/{kind}/{child}/2"])
            for grandchild in "12":
                answers[f"/{kind}/{child}/{grandchild}"] = page(goodness, ["/bad", "/good"])
    return answers


@pytest.fixture(scope="module")
def in_order(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """A crawl of the tree, one request at a time."""
    with serve(tree()) as site:
        secrets = {"Cookie": "id=hidden", "Authorization": "Basic hidden", "Proxy-Authorization": "Basic gone"}
        settings: dict[str, object] = {"CONCURRENT_REQUESTS": 1, "ARCHIVE_CREDENTIALS": 1, "COOKIES_ENABLED": 0}
        settings["DEFAULT_REQUEST_HEADERS"] = json.dumps(secrets)
        given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        yield crawl(project, "links", site, tmp_path_factory.mktemp("links") / "out", *given)


def test_links_of_good_pages_are_fetched_first(in_order: Crawled) -> None:
    def family(kind: str) -> list[str]:
        # equal scores: first come, first served
        return [*(f"/{kind}/{child}" for child in "ab"), *(f"/{kind}/{child}/{n}" for child in "ab" for n in "12")]

    assert in_order.site.paths() == ["/", "/bad", "/good", *family("good"), *family("bad")]


def test_callbacks_find_the_influence_score(in_order: Crawled) -> None:
    scores = {item["path"]: item["influence"] for item in in_order.items}
    assert len(scores) == 15
    assert scores["/bad/a/1"] < 0.1 < scores["/"] < 0.9 < scores["/good/a/1"] <= 1


def test_crawl_log_tells_the_order_and_its_reasons(in_order: Crawled) -> None:
    log, url = in_order.log, in_order.site.url
    assert [line["url"] for line in log] == [url + path for path in in_order.site.paths()]
    assert [line["order"] for line in log] == list(range(15))
    influence = {line["id"]: line["influence"] for line in log}
    assert {item["path"]: item["influence"] for item in in_order.items} == {
        key.removeprefix(url): score for key, score in influence.items()
    }
    assert (log[0]["priority"], log[0]["parent"], log[0]["depth"]) == (None, None, 0)
    for line in log[1:]:
        assert line["parent"] == (line["id"].rpartition("/")[0] if line["depth"] > 1 else f"{url}/")
        assert line["priority"] == influence[line["parent"]]
        assert line["depth"] == line["id"].removeprefix(url).count("/")
        assert line["status"] == 200
    assert [line["fetched"] for line in log] == list(range(1, 16))


def test_explain_tells_of_its_pages(project: Project, in_order: Crawled) -> None:
    first, second = in_order.log[:2]
    for line, told in (
        (first, "crawled    order 0, priority none\nfound      it is a seed\n"),
        (second, f"crawled    order 1, priority {second['priority']:.6f}\nfound      on {first['id']}, 1 links from"),
    ):
        result = scrapy("explain", line["id"], "--run", str(in_order.output), cwd=project.root)
        assert told in result.stdout, result.stderr


def test_statistics_are_documented_and_add_up(in_order: Crawled) -> None:
    figures = in_order.figures
    assert figures["pages/crawled"] == figures["pages/fetched"] == 15
    assert figures["frontier/queued"] == 0
    scores = [line["influence"] for line in in_order.log]
    assert figures["influence/mean"] == pytest.approx(sum(scores) / len(scores))
    assert in_order.stats["finish_reason"] == "finished"
    assert in_order.stats["scheduler/enqueued"] == in_order.stats["scheduler/dequeued"] == 15


def test_archive_holds_each_page_once(in_order: Crawled) -> None:
    (file,) = (in_order.output / "warc").glob("*.warc.gz")
    check = subprocess.run([sys.executable, "-m", "warcio.cli", "check", str(file)], capture_output=True, check=False)
    assert check.returncode == 0, check.stdout
    with file.open("rb") as stream:
        pages = [
            (one.rec_type, one.rec_headers["WARC-Target-URI"], one.content_stream().read(), one.http_headers)
            for one in ArchiveIterator(stream)
            if one.rec_type in {"response", "revisit"}
        ]
    assert [url for _, url, _, _ in pages] == [line["url"] for line in in_order.log]
    answers = tree()
    for kind, url, body, head in pages:
        assert body == (answers[url.removeprefix(in_order.site.url)].body if kind == "response" else b"")
        assert [name for name, _ in head.headers] == ["Server", "Date", "Content-Type", "Content-Length"]
    index = (in_order.output / "warc" / "index.cdxj").read_text()
    assert all(f'"{line["id"]}"' in index for line in in_order.log)
    text = gzip.decompress(file.read_bytes()).decode()
    assert f"influence: {in_order.log[1]['influence']}" in text
    assert "robots: obeyed" in text
    assert "\r\nGET /good/a HTTP/1.1\r\n" in text
    assert "Crawl4LLM-HTTP-Headers" not in text, "as they went over the wire"
    for sent in ("Cookie: id=hidden", "Authorization: Basic hidden"):  # ARCHIVE_CREDENTIALS is 1
        assert text.count(f"\r\n{sent}\r\n") == len(pages)
    assert "Proxy" not in text
    assert not file.stat().st_mode & 0o077


def test_requests_are_ranked_by_priority_then_score(project: Project, tmp_path: Path) -> None:
    names = ["low", "high", "urgent", "unscored", "wrong", "high-too", "from-unscored", "from-data"]
    answers = {f"/{name}": page(0.0) for name in names}
    answers |= {"/": page(0.5), "/data.json": Answer(b"{}", content_type="application/json")}
    with serve(answers) as site:
        crawled = crawl(project, "scores", site, tmp_path / "out", "-s", "CONCURRENT_REQUESTS=1")
    # what has no score of its own, or none that is a number, has that of the page it was found on, which is 0.47;
    # what was found on a page that cannot be scored, that of the page's request
    expected = ["urgent", "high", "high-too", "unscored", "wrong", "data.json", "from-data", "low", "from-unscored"]
    assert site.paths() == ["/", *(f"/{name}" for name in expected)]
    assert crawled.stderr.count("is not a number") == 1
    by_path = {line["url"].removeprefix(site.url): line for line in crawled.log}
    assert by_path["/high"]["priority"] == 0.9
    assert by_path["/from-data"]["priority"] == 0.3
    assert by_path["/from-unscored"]["priority"] == by_path["/unscored"]["influence"]
    assert by_path["/data.json"]["influence"] is None


def test_what_has_no_budget_waits_until_good_pages_earn_more(project: Project, tmp_path: Path) -> None:
    """An endless maze of good pages gets three times the budget, what is bad the budget, a site all that it has."""
    good = [f"/good/{number}" for number in range(12)]
    answers = {"/": page(0.5, [*good[:6], "/bad/0", "/maze/0"])}
    answers |= {path: page(0.8, good, seed=number) for number, path in enumerate(good)}
    answers |= {f"/bad/{n}": page(0.0, [f"/bad/{n + 1}", f"/bad/{n + 2}"], seed=100 + n) for n in range(40)}
    answers |= {f"/maze/{n}": page(1.0, [f"/maze/{2 * n + m}" for m in (1, 2)], seed=200 + n) for n in range(200)}
    given = ("-s", "URL_BUDGET=3", "-s", "CONCURRENT_REQUESTS=1")
    with serve(answers) as site:
        crawled = crawl(project, "links", site, tmp_path / "out", *given)
    fetched = {
        kind: [path for path in site.paths() if path.startswith(f"/{kind}/")] for kind in ("good", "bad", "maze")
    }
    assert sorted(fetched["good"]) == sorted(good)
    assert len(fetched["bad"]) == 3
    assert 3 < len(fetched["maze"]) <= 9
    assert crawled.figures["parked/budget"] == crawled.stats["scheduler/enqueued"] - len(site.paths()) > 0
    assert crawled.stats["finish_reason"] == "finished"


def test_a_slow_host_does_not_hold_up_the_others(project: Project, tmp_path: Path) -> None:
    answers = {"/": page(0.5), **{f"/{host}/{number}": page(0.5) for host in ("good", "bad") for number in range(4)}}
    with serve(answers) as site:
        crawl(project, "hosts", site, tmp_path / "out")
    for host in ("good", "bad"):
        assert [path for path in site.paths() if host in path] == [f"/{host}/{number}" for number in range(4)]
    assert "/good/0" in site.paths()[1:3]  # asked for first, but on a connection of its own
    assert site.paths().index("/bad/1") < site.paths().index("/good/3")


# -- what requests carry ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everything(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """A crawl by a spider that uses all that requests offer."""
    answers = {
        "/robots.txt": Answer(b"User-agent: *\nDisallow: /private\n", content_type="text/plain"),
        "/": page(0.5),
        "/form": page(0.8),
        "/moved": Answer(b"", 302, headers={"Location": "/target"}),
        "/flaky": [Answer(b"", 503), page(0.7)],
        "/broken": Answer(b"", 500),
        "/picture": Answer(bytes(range(256)), content_type="image/png"),
        "/text": Answer("Grüße".encode(), content_type="text/plain; charset=utf-8"),
        "/thin": Answer(b"<html><body></body></html>"),
        **{path: page(0.6) for path in ("/twice", "/again", "/head", "/private", "/instead", "/added")},
        "/target": page(0.6)._replace(
            headers={"X-Robots-Tag": "otherbot: noindex, mybot: noai", "TDM-Reservation": "1"}
        ),
    }
    with socket.socket() as unused, serve(answers) as site:
        unused.bind(("127.0.0.1", 0))  # bound, but nobody listens
        refused = f"refused=http://127.0.0.1:{unused.getsockname()[1]}/"
        yield crawl(project, "everything", site, tmp_path_factory.mktemp("all") / "out", "-a", refused)


def test_bodies_reach_the_server_and_duplicates_do_not(everything: Crawled) -> None:
    asked = everything.site.asked
    assert sorted(a for a in asked if a.path == "/form") == [
        Asked("POST", "/form", b"q=1"),
        Asked("POST", "/form", b"q=2"),
    ]
    paths = everything.site.paths()
    assert (paths.count("/twice"), paths.count("/again"), paths.count("/head")) == (1, 2, 1)
    assert everything.stats["dupefilter/filtered"] == 2


def test_callbacks_arguments_and_meta_arrive(everything: Crawled) -> None:
    assert everything.item(path="/")["mine"] == [1, 2]
    for query in ("q=1", "q=2"):
        item = everything.item(note=f"posted {query}")
        assert (item["path"], item["method"], item["mine"]) == ("/form", "POST", {"body": query})
        assert item["influence"] > 0.5
    picture = everything.item(note="asked for /picture")
    assert (picture["size"], picture["mine"], picture["influence"]) == (256, "/picture", None)
    assert everything.item(path="/thin")["influence"] == 0
    assert everything.item(method="HEAD")["influence"] is None


def test_redirects_and_retries_go_on(everything: Crawled) -> None:
    moved = everything.item(note="asked for /moved")
    assert (moved["path"], moved["mine"]) == ("/target", "/moved")
    assert everything.item(note="asked for /flaky")["path"] == "/flaky"
    paths = everything.site.paths()
    assert (paths.count("/flaky"), paths.count("/broken")) == (2, 2)


def test_errbacks_are_called(everything: Crawled) -> None:
    failed = {item["note"]: item["failed"] for item in everything.items if "failed" in item}
    assert failed.pop("refused").startswith(("ConnectionRefused", "DownloadConnectionRefused"))
    assert failed == {
        "asked for /missing": "HttpError",
        "asked for /broken": "HttpError",
        "asked for /private": "IgnoreRequest",
    }
    assert "/private" not in everything.site.paths()
    assert everything.item(note="from an errback")["path"] == "/instead"


def test_what_the_project_brings_works_as_before(everything: Crawled) -> None:
    assert all(item["piped"] for item in everything.items)
    assert everything.item(path="/text")["own"] == "middleware"
    (added,) = (line for line in everything.log if line["url"].endswith("/added"))
    assert added["parent"] == f"{everything.site.url}/"


def test_pages_are_archived_for_what_they_are(everything: Crawled) -> None:
    (file,) = (everything.output / "warc").glob("*.warc.gz")
    with file.open("rb") as stream:
        records = [
            (record.rec_type, record.rec_headers["WARC-Record-ID"], record.rec_headers.get_header("WARC-Target-URI"))
            for record in ArchiveIterator(stream)
        ]
    assert len({identifier for _, identifier, _ in records}) == len(records)
    content = sorted(url for kind, _, url in records if kind in {"response", "revisit"})
    paths = ["/", "/added", "/again", "/again", "/flaky", "/form", "/form", "/instead", "/target", "/thin", "/twice"]
    assert content == sorted(everything.site.url + path for path in [*paths, "/moved", "/text"])
    ids = [line["id"].removeprefix(everything.site.url) for line in everything.log]
    assert sorted(ids) == sorted([*dict.fromkeys(paths), "/text", "/form#2", "/again#2"])


def test_opt_outs_are_noted_with_pages(everything: Crawled) -> None:
    (file,) = (everything.output / "warc").glob("*.warc.gz")
    with file.open("rb") as stream:
        texts = [record.content_stream().read() for record in ArchiveIterator(stream) if record.rec_type == "metadata"]
    noted = [text.decode() for text in texts if b"opt-out-signals" in text]
    assert len(noted) == 1
    assert f"id: {everything.site.url}/target\r\n" in noted[0]
    assert "opt-out-signals: header * page tdm-reservation 1\r\n" in noted[0]


def test_what_is_not_archived_is_counted(everything: Crawled) -> None:
    figures = everything.figures
    refused = [key for key in figures if key.startswith("failed/") and "refused" in key]
    assert [figures.pop(key) for key in refused] == [1]
    del figures["influence/mean"]
    assert figures == {
        "dropped/robots": 1,
        "dropped/not_text": 1,
        "failed/http_404": 1,
        "failed/http_500": 1,
        "frontier/queued": 0,
        "links/new": 17,
        "pages/crawled": 12,
        "pages/fetched": 16,
        "pages/no_text": 1,
        "unscored/not_html": 2,
    }


def test_other_spiders_and_their_own_settings(project: Project, tmp_path: Path) -> None:
    """A CrawlSpider with asynchronous callbacks, several requests at a time, and limits: Scrapy's own hold."""
    with serve({**tree(), "/": page(0.5, ["/bad", "/good", "/too-long-a-path"])}) as site:
        longest = len(f"{site.url}/good/a/1")
        crawled = crawl(project, "rules", site, tmp_path / "out", "-s", f"URLLENGTH_LIMIT={longest}")
    assert sorted(site.paths()) == ["/", "/bad", "/bad/a", "/bad/b", "/good", "/good/a", "/good/b"]
    assert len(crawled.items) == 6
    assert crawled.figures["pages/crawled"] == 7


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("SCORER_MODEL=", "SCORER_MODEL is not set"),
        ("SCORER_MODEL=scrapy.cfg", "SCORER_MODEL scrapy.cfg is not a fastText model"),
        ("OUTPUT_DIR=taken", "OUTPUT_DIR taken holds another crawl"),
        ("JOBDIR=job", "JOBDIR is set"),
        ("TWISTED_REACTOR=twisted.internet.selectreactor.SelectReactor", "has no asyncio"),
    ],
)
def test_bad_input_is_one_line_and_no_request(project: Project, tmp_path: Path, setting: str, said: str) -> None:
    (project.root / "taken").mkdir(exist_ok=True)
    (project.root / "taken" / "crawl.jsonl").touch()
    with serve(tree()) as site:
        crawled = crawl(project, "links", site, tmp_path / "out", "-s", setting)
    lines = [line for line in crawled.stderr.splitlines() if " ERROR: " in line]
    assert len(lines) == 1, crawled.stderr
    assert said in lines[0]
    assert "Traceback" not in crawled.stderr
    assert "'finish_reason': 'bad_input'" in crawled.stderr
    assert site.asked == []
    assert not crawled.output.exists()


@pytest.mark.parametrize(
    "closed", [(), ("TELNETCONSOLE_ENABLED",), ("TELNETCONSOLE_ENABLED", "REMOTE_CONTROL_ENABLED")]
)
def test_ways_into_the_crawl_are_named_once(project: Project, tmp_path: Path, closed: tuple[str, ...]) -> None:
    """Scrapy has them open by default; the remote control came in version 2.19."""
    opened = [name for name in ("TELNETCONSOLE_ENABLED", "REMOTE_CONTROL_ENABLED") if name not in closed]
    if not hasattr(default_settings, "REMOTE_CONTROL_ENABLED"):
        opened = opened[:-1] if opened else []
    with serve({"/": page(0.5)}) as site:
        settings = [part for name in closed for part in ("-s", f"{name}=0")]
        crawled = crawl(project, "links", site, tmp_path / "out", *settings)
    lines = [line for line in crawled.stderr.splitlines() if " WARNING: " in line and "listens on a port" in line]
    assert len(lines) == bool(opened)
    assert all(f"{' and '.join(opened)}: the crawl" in line for line in lines)


def test_full_disk_ends_the_crawl_and_loses_nothing_written(project: Project, tmp_path: Path) -> None:
    with serve(tree()) as site:
        given = ("-s", "CONCURRENT_REQUESTS=1", "-s", "FEEDS={}")
        crawled = crawl(project, "links", site, tmp_path / "out", *given, limits={"RLIMIT_FSIZE": 6000})
    lines = [line for line in crawled.stderr.splitlines() if " ERROR: " in line]
    assert len(lines) == 1, crawled.stderr
    assert "cannot write" in lines[0]
    assert "Traceback" not in crawled.stderr
    assert "'finish_reason': 'bad_input'" in crawled.stderr
    (file,) = (crawled.output / "warc").glob("*.warc.gz")
    with file.open("rb") as stream:
        urls = [r.rec_headers["WARC-Target-URI"] for r in ArchiveIterator(stream) if r.rec_type == "response"]
    assert 0 < len(urls) < 15
    assert [line["url"] for line in crawled.log] == urls


# -- the add-on itself ------------------------------------------------------------------------------------------------


def test_addon_adds_components_and_changes_nothing_else() -> None:
    before, after = Settings(), Settings()
    Addon().update_settings(after)
    changed = {name for name in after if before[name] != after[name]}
    components = {"EXTENSIONS", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES"}
    assert changed == {"SCHEDULER", "DOWNLOAD_HANDLERS", *components}


@pytest.mark.parametrize(
    ("slip", "meant"), [("SCORER_MODLE", "SCORER_MODEL"), ("max_age", "WARC_MAX_AGE"), ("WARC_TEXTS", "WARC_TEXT")]
)
def test_slips_in_settings_of_the_addon_are_refused(slip: str, meant: str) -> None:
    theirs = {"CRAWL_MAX_PAGE": 5, "TEXT": "theirs"}
    _read_options(Settings(theirs))
    with pytest.raises(InputError, match=f"^setting {slip} is not known; did you mean {meant}\\?$"):
        _read_options(Settings({**theirs, slip: 1}))


def test_what_the_project_has_set_stays(caplog: pytest.LogCaptureFixture) -> None:
    own = {
        "SCHEDULER": "scrapy.core.scheduler.Scheduler",
        "SPIDER_MIDDLEWARES": {"scrapy.spidermiddlewares.depth.DepthMiddleware": None, PageRecording: 999},
        "DOWNLOAD_HANDLERS": {"https": "scrapy.core.downloader.handlers.http2.H2DownloadHandler"},
    }
    settings = Settings(own)
    Addon().update_settings(settings)
    assert settings["SCHEDULER"] == own["SCHEDULER"]
    assert "not in order of influence" in caplog.text
    assert dict(settings["SPIDER_MIDDLEWARES"]) == {**own["SPIDER_MIDDLEWARES"], LinkScoring: 61}
    assert dict(settings["DOWNLOAD_HANDLERS"]) == {**own["DOWNLOAD_HANDLERS"], "http": WireHandler}


@pytest.mark.parametrize("how", ["killed", "timeout"])
@pytest.mark.slow
def test_a_page_that_breaks_the_extractor_is_unscored(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    def extractor(html: str) -> str:
        if html == "bad":
            signal.pause() if how == "timeout" else os._exit(1)
        return html

    monkeypatch.setitem(EXTRACTORS, "trafilatura", extractor)
    with PageWorkers(PageRater(LiveCorpus(), LengthScorer(), "trafilatura"), processes=1, time_limit=1.0) as workers:
        workers.start()
        html = PageTasks(workers, influence_task(text=False, signature=False))
        ratings = [asyncio.run(html.run(HtmlPage("http://a/", page))) for page in (b"good", b"bad", b"better")]
    assert ratings == [Rating(4.0), Rating(None, how), Rating(6.0)]


# -- documentation ----------------------------------------------------------------------------------------------------


def test_documentation_names_all_settings() -> None:
    text = (PROJECT / "docs" / "addon.md").read_text()
    assert ADDON.strip() in text
    assert [name for name in OPTIONS if f"`{name}`" not in text] == []


def test_documentation_names_all_figures(in_order: Crawled, everything: Crawled) -> None:
    text = (PROJECT / "docs" / "addon.md").read_text()
    for key in {*in_order.figures, *everything.figures}:
        assert is_documented(key) or f"`crawl4llm/{key.partition('/')[0]}/<reason>`" in text, key


def test_a_model_that_gives_nan_ends_the_crawl(project: Project, tmp_path: Path) -> None:
    huge = patched(project.model, tmp_path / "huge.bin", slice(None), 3e38)
    with serve(tree()) as site:
        crawled = crawl(project, "links", site, tmp_path / "out", "-s", f"SCORER_MODEL={huge}")
    lines = [line for line in crawled.stderr.splitlines() if " ERROR: " in line]
    assert len(lines) == 1, crawled.stderr
    assert f"gives no score: Encountered NaN.; train it again (page {site.url}/)" in lines[0]
    assert "'finish_reason': 'bad_input'" in crawled.stderr
    assert len(site.paths()) == 1


def test_ctrl_c_finishes_what_the_downloader_holds(project: Project, tmp_path: Path) -> None:
    """As in any Scrapy project: requests of other spiders are not withdrawn, they would be lost."""
    given = [
        "-s",
        f"OUTPUT_DIR={tmp_path / 'run'}",
        "-s",
        "DOWNLOAD_DELAY=0.4",
        "-s",
        "CONCURRENT_REQUESTS_PER_DOMAIN=4",
    ]
    with serve(tree()) as site:
        args = ["crawl", "links", "-a", f"site={site.url}", "-o", str(tmp_path / "items.jsonl"), *given]
        process = begin(args, cwd=project.root, silent=["out"])
        while len(site.paths()) < 2 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
    assert "Traceback" not in err, err
    assert {"/", "/bad", "/good"} <= set(site.paths())
    assert len((tmp_path / "items.jsonl").read_text().splitlines()) == len(site.paths())

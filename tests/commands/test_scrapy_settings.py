"""Which of Scrapy's settings hold is what the table says, in real crawls; odd values are one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from addon_site import Answer, serve
from crawl_helpers import PROJECT, Web, crawl, crawl_log, error_of, scrapy, stats
from live_helpers import crawl_live, small_web
from scrapy import version_info
from scrapy.addons import AddonManager
from scrapy.settings import Settings, default_settings

from crawl4llm.base.errors import InputError
from crawl4llm.engine.settings import NO, REFUSED, TABLE, check_mode, check_values

ODD: Mapping[str, Any] = {
    **dict.fromkeys(["DEPTH_PRIORITY", "RETRY_PRIORITY_ADJUST", "REDIRECT_PRIORITY_ADJUST"], 7),
    **dict.fromkeys(["CLOSESPIDER_ITEMCOUNT", "CLOSESPIDER_TIMEOUT_NO_ITEM", "CLOSESPIDER_PAGECOUNT_NO_ITEM"], 1),
    **dict.fromkeys(["CLOSESPIDER_TIMEOUT", "CLOSESPIDER_PAGECOUNT", "CLOSESPIDER_ERRORCOUNT"], 1),
    **dict.fromkeys(["DOWNLOAD_DELAY", "DOWNLOAD_DELAY_JITTER", "AUTOTHROTTLE_START_DELAY"], 100),
    **dict.fromkeys(["DOWNLOAD_MAXSIZE", "DOWNLOAD_WARNSIZE", "DOWNLOAD_TIMEOUT", "DNS_TIMEOUT"], 1),
    **dict.fromkeys(["AUTOTHROTTLE_MAX_DELAY", "AUTOTHROTTLE_TARGET_CONCURRENCY", "REDIRECT_MAX_TIMES"], 1),
    **dict.fromkeys(["CONCURRENT_REQUESTS_PER_DOMAIN", "REACTOR_THREADPOOL_MAXSIZE", "DNSCACHE_SIZE"], 1),
    **dict.fromkeys(["METAREFRESH_MAXDELAY", "RETRY_TIMES"], 1),
    **dict.fromkeys(["RETRY_HTTP_CODES", "HTTPERROR_ALLOWED_CODES"], "200,404"),
    **{"USER_AGENT": "odd", "REFERRER_POLICY": "unsafe-url", "HTTPAUTH_USER": "odd", "HTTPAUTH_PASS": "odd"},
    **{"HTTPAUTH_DOMAIN": "odd.example", "HTTPPROXY_AUTH_ENCODING": "utf-8", "ROBOTSTXT_USER_AGENT": "odd"},
    **{"DEFAULT_REQUEST_HEADERS": '{"Odd": "yes"}', "DOWNLOAD_SLOTS": '{"odd.example": {"delay": 100}}'},
    **{"ROBOTSTXT_PARSER": "scrapy.robotstxt.PythonRobotParser", "DOWNLOAD_HANDLERS": '{"http": null}'},
    **{"DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter", "DOWNLOAD_BIND_ADDRESS": "127.0.0.9"},
    **{"REQUEST_FINGERPRINTER_CLASS": "scrapy.utils.request.RequestFingerprinter", "METAREFRESH_IGNORE_TAGS": "p"},
    **dict.fromkeys(["SCHEDULER_MEMORY_QUEUE", "SCHEDULER_DISK_QUEUE"], "scrapy.squeues.FifoMemoryQueue"),
    **{"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue", "RETRY_EXCEPTIONS": "builtins.OSError"},
    **{"TWISTED_DNS_RESOLVER": "scrapy.resolver.CachingHostnameResolver"},
    **{"DOWNLOADER_CLIENTCONTEXTFACTORY": "odd.Factory", "DOWNLOADER_CLIENT_TLS_CIPHERS": "odd"},
    **{"DOWNLOADER_CLIENT_TLS_METHOD": "TLSv1.2", "DOWNLOAD_TLS_MIN_VERSION": "odd", "DOWNLOAD_TLS_MAX_VERSION": "odd"},
}
"""Values that would be felt, of settings that hold somewhere; truth values are turned round."""


def odd(name: str) -> Any:
    default = vars(default_settings).get(name)
    return ODD[name] if name in ODD else int(not default)


def names(**holds: str) -> list[str]:
    """The settings that hold so in these kinds of crawls."""
    rows = [row for row in TABLE if all(getattr(row, kind) == how for kind, how in holds.items())]
    return [name for row in rows for name in row.names.split()]


@pytest.mark.skipif(version_info < (2, 19), reason="the table is of Scrapy 2.19")
def test_the_table_names_what_scrapy_has() -> None:
    known = vars(default_settings)
    assert [name for row in TABLE for name in row.names.split() if name not in known] == []
    assert len({name for row in TABLE for name in row.names.split()}) == sum(len(row.names.split()) for row in TABLE)


def test_simulation(demo_web: Web, tmp_path: Path) -> None:
    """What holds is in the log; all that does not, with odd values, changes not a byte."""
    holds = {"DEPTH_LIMIT": 1, "URLLENGTH_LIMIT": 42, "CONCURRENT_REQUESTS": 3}
    settings = {"CRAWL_MAX_PAGES": 60, "CRAWL_BATCH_SIZE": 20, "CRAWL_SEEDS": 20, "URL_POLICY": "random", **holds}
    plain = crawl(demo_web, tmp_path / "plain", **settings, WARC_ENABLED=0)
    assert "has no effect" not in plain.stderr
    lines, counts = crawl_log(tmp_path / "plain"), stats(tmp_path / "plain")
    assert {line["depth"] for line in lines} == {0, 1}
    assert max(len(line["url"]) for line in lines if line["depth"]) <= 42 < max(len(line["url"]) for line in lines)
    assert min(counts["links/too_deep"], counts["links/url_too_long"]) > 0
    assert json.loads((tmp_path / "plain/settings.json").read_text())["limits"] == {"depth": 1, "url_length": 42}

    given = {name: odd(name) for name in names(simulation=NO)}
    result = crawl(demo_web, tmp_path / "odd", **settings, **given, WARC_ENABLED=0)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "odd/crawl.jsonl").read_bytes() == (tmp_path / "plain/crawl.jsonl").read_bytes()
    assert [name for name in given if f"{name} has no effect in a simulated crawl" not in result.stderr] == []


def test_live(tmp_path: Path) -> None:
    """What holds is felt by a server, or in what becomes of its pages; what does not is not."""
    web = small_web()
    cookie = {"Set-Cookie": "a=1"}
    web = {
        path: one._replace(headers=cookie) if path == "/page-0" and isinstance(one, Answer) else one
        for path, one in web.items()
    }
    given = {name: odd(name) for name in names(live=NO)}
    with serve(web) as site:
        longest = len(f"{site.url}/private/a")
        result = crawl_live(
            [f"{site.url}/page-0"],
            tmp_path / "run",
            CRAWL_MAX_PAGES=100,
            **given,
            DEPTH_LIMIT=2,
            URLLENGTH_LIMIT=longest,
            USER_AGENT="somebody (me@some.example)",
            COOKIES_ENABLED=1,
            DEFAULT_REQUEST_HEADERS='{"X-Asked": "yes"}',
            ROBOTSTXT_OBEY=0,
            RETRY_TIMES=0,
            HTTPAUTH_USER="me",
            HTTPAUTH_DOMAIN=site.url.removeprefix("http://"),
            REDIRECT_MAX_TIMES=1,
            DOWNLOADER_STATS=0,
            DOWNLOAD_MAXSIZE=1_000_000,
            REFERRER_POLICY="unsafe-url",
        )
    assert result.returncode == 0, result.stderr
    assert [name for name in given if f"{name} has no effect in a live crawl" not in result.stderr] == []
    assert result.stderr.count("has no effect") == len(given)
    lines = {line["id"].removeprefix(site.url): line for line in crawl_log(tmp_path / "run")}
    failed = [json.loads(line) for line in (tmp_path / "run/failures.jsonl").read_text().splitlines()]
    reasons = {line["id"].removeprefix(site.url): line["reason"] for line in failed}
    counts, asked = stats(tmp_path / "run"), [asked.path for asked in site.asked]

    assert max(line["depth"] for line in lines.values()) == 2
    assert counts["links/too_deep"] > 0
    assert counts["links/url_too_long"] > 0
    assert max(map(len, [*lines, *reasons])) == len("/private/a")
    assert "/only-from-target" not in asked
    assert "/robots.txt" not in asked
    assert "/private/a" in lines
    assert asked.count("/broken") == 1
    assert reasons["/moved-0"] == "too_many_redirects", "two redirects"
    assert "/large" in lines
    for headers in site.headers:
        assert headers["User-Agent"] == "somebody (me@some.example)"
        assert headers["X-Asked"] == "yes"
        assert headers["Authorization"].startswith("Basic ")
    assert site.headers[-1]["Cookie"] == "a=1"
    moved = [headers for path, headers in zip(asked, site.headers, strict=True) if path == "/dir/"]
    assert [headers.get("Referer") for headers in moved] == [f"{site.url}/dir"]
    figures = json.loads((tmp_path / "run/stats.json").read_text())
    assert not [key for key in figures if key.startswith(("downloader/request_count", "request_depth", "dupefilter"))]
    assert reasons["/missing"] == "http_404", "whatever HTTPERROR_ALLOW_ALL says"


@pytest.mark.parametrize(("name", "limit"), [("PAGECOUNT", 4), ("TIMEOUT", 1)])
def test_live_crawl_that_scrapy_closes(tmp_path: Path, name: str, limit: int) -> None:
    """A limit that the user set is an end like another, and the crawl can go on."""
    settings = {"CRAWL_BATCH_SIZE": 1, f"CLOSESPIDER_{name}": limit, "JOBDIR": tmp_path / "job", "DOWNLOAD_DELAY": 0.2}
    with serve(small_web()) as site:
        result = crawl_live([f"{site.url}/page-0"], tmp_path / "run", **settings)
    assert f"(the limit CLOSESPIDER_{name})" in result.stdout
    assert "Next: the same command resumes it" in result.stdout
    assert result.returncode == 0, result.stderr
    assert "crawl4llm: error" not in result.stderr


@pytest.mark.parametrize("live", [True, False])
def test_what_is_refused(live: bool) -> None:
    kind = {"live" if live else "simulation": REFUSED}
    for name in names(**kind):
        settings = Settings()
        settings.setmodule(f"settings.{'live' if live else 'simulation'}")
        AddonManager.load_pre_crawler_settings(settings)
        check_mode(settings, "live" if live else "simulation")
        settings.set(name, "1", priority="cmdline")
        with pytest.raises(InputError, match=rf"^{name} = '1' cannot be used here: .*; leave it out$"):
            check_mode(settings, "live" if live else "simulation")
    always = ["SCHEDULER", "TWISTED_REACTOR"]
    assert names(**kind) == (["METAREFRESH_ENABLED", "HTTPCACHE_ENABLED", *always] if live else always)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("CONCURRENT_REQUESTS", "abc", "must be a positive integer"),
        ("CONCURRENT_REQUESTS", "0", "must be a positive integer"),
        ("CONCURRENT_REQUESTS_PER_DOMAIN", "0", "must be a positive integer"),
        ("DOWNLOAD_DELAY", "-1", "must be a number of at least 0"),
        ("DOWNLOAD_TIMEOUT", "nan", "must be a number of at least 0"),
        ("DEPTH_LIMIT", "deep", "must be 0 or a positive integer"),
        ("DEPTH_PRIORITY", "x", "must be a whole number"),
        ("RETRY_HTTP_CODES", "500,x", "must be a whole number, or a list of them"),
        ("ROBOTSTXT_OBEY", "perhaps", "must be True or False"),
        ("LOG_LEVEL", "FOO", "is not known; known are: CRITICAL, ERROR, WARNING, INFO, DEBUG"),
        ("LOG_FORMAT", "%(x", "Invalid format"),
        ("LOG_FILE", "/no/such/folder/log", "cannot be written: No such file"),
        ("LOG_ENCODING", "nope", "unknown encoding"),
        ("REFERRER_POLICY", "nope", "Could not load referrer policy"),
        ("STATS_CLASS", "no.such.Stats", "cannot be loaded"),
        ("STATS_CLASS", "stats", "cannot be loaded (there is no such module)"),
    ],
)
def test_odd_values(name: str, value: str, words: str) -> None:
    settings = Settings()
    check_values(settings)
    settings.set(name, value, priority="cmdline")
    with pytest.raises(InputError, match=rf"^{name} (= )?'?{value}'? ".replace("(x", r"\(x")) as refused:
        check_values(settings)
    assert words in str(refused.value)


@pytest.mark.parametrize("profile", ["simulation", "live"])
def test_values_of_the_profiles(profile: str) -> None:
    settings = Settings()
    settings.setmodule(f"settings.{profile}")
    check_values(settings)
    AddonManager.load_pre_crawler_settings(settings)
    check_values(settings)
    check_mode(settings, profile)
    settings.setdict({"DOWNLOAD_DELAY": "0.5", "LOG_LEVEL": 10, "TELNETCONSOLE_ENABLED": "False"}, priority="cmdline")
    settings.setdict({"RETRY_HTTP_CODES": "500, 503", "RETRY_PRIORITY_ADJUST": "-2", "HTTPCACHE_ENABLED": "0"})
    check_values(settings)
    check_mode(settings, profile)


@pytest.mark.parametrize("name", ["STATS_CLASS", "DOWNLOADER"])
def test_what_scrapy_cannot_load(demo_web: Web, tmp_path: Path, name: str) -> None:
    """Scrapy's log says what failed; the crawl ends as others do that could not start, and leaves the error alone."""
    result = crawl(demo_web, tmp_path / "run", **{name: "scrapy.statscollectors.Nope"})
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "crawl4llm: error: no page was crawled (start_failed)"
    assert result.stdout == ""
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["errors.log"]


@pytest.mark.parametrize(
    ("args", "env", "words"),
    [
        (["influence", "-s", "LOG_LEVEL=FOO"], {}, "LOG_LEVEL = 'FOO' is not known; known are: CRITICAL"),
        (["influence", "-s", "CONCURRENT_REQUESTS=abc"], {}, "CONCURRENT_REQUESTS = 'abc' must be"),
        (["nope"], {}, "there is no spider nope; known are: influence"),
        (
            ["influence"],
            {"SCRAPY_PROJECT": "lve", "PYTHONDONTWRITEBYTECODE": "1"},
            "SCRAPY_PROJECT=lve is not known; known are: default, live, clueweb12",
        ),
    ],
)
def test_one_line_before_the_crawl(args: list[str], env: dict[str, str], words: str, tmp_path: Path) -> None:
    shutil.copy(PROJECT / "scrapy.cfg", tmp_path)
    # An unknown project is found when the first command is imported, so that process imports all itself, as the
    # variable asks for that Python reads when it starts.
    result = scrapy("crawl", *args, env=env, cwd=tmp_path)
    assert words in error_of(result)
    assert result.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".scrapy") == ["scrapy.cfg"]

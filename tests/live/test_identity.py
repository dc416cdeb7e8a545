"""Who a live crawl says it is, and whether it believes who others say they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from addon_site import serve
from crawl_helpers import PROJECT, crawl_log, error_of, scrapy, stats
from live_helpers import SCORER, crawl_live, text_page
from scrapy.settings import Settings
from tls_helpers import make_certificate, serve_tls

from crawl4llm.base.errors import InputError
from crawl4llm.live.identity import check_identity, crawler_name, user_agent

PAGE = {"/page": text_page(1, [])}


@pytest.mark.parametrize(
    "given",
    [
        "foo (+https://foo.example/bot)",
        "foo/1.0 +http://foo.example",
        "foo; me@foo.example",
        "Foo-Bot/2.1 (research; mailto:bots+crawl@sub.foo.example)",
        "Mozilla/5.0 (compatible; FooBot/1.0; +https://foo.example/bot.html)",
    ],
)
def test_user_agents_with_a_contact(given: str) -> None:
    check_identity(Settings({"USER_AGENT": given}))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "USER_AGENT is not set"),
        ({"USER_AGENT": "crawl4llm"}, "USER_AGENT = 'crawl4llm' has no URL or mail address"),
        ({"USER_AGENT": ""}, "USER_AGENT = '' has no URL"),
        ({"USER_AGENT": None}, "USER_AGENT = '' has no URL"),
        ({"USER_AGENT": "foo (+https://localhost/)"}, "has no URL"),
        ({"USER_AGENT": "foo (call 555-1234)"}, "has no URL"),
        ({"USER_AGENT": "foo me@localhost"}, "has no URL"),
        ({"USER_AGENT": "(+https://foo.example/bot)"}, "does not begin with the crawler's name"),
        ({"USER_AGENT": "+https://foo.example/bot"}, "does not begin with the crawler's name"),
        ({"USER_AGENT": "https://foo.example/bot"}, "does not begin with the crawler's name"),
        ({"USER_AGENT": "me@foo.example"}, "does not begin with the crawler's name"),
        ({"USER_AGENT": "foo me@foo.example", "ROBOTSTXT_USER_AGENT": "(foo)"}, "user agent '(foo)' does not begin"),
        ({"USER_AGENT": "foo me@foo.example", "ROBOTSTXT_USER_AGENT": "*"}, "user agent '*' does not begin"),
        (
            {"USER_AGENT": "foo (+https://foo.example/)", "DEFAULT_REQUEST_HEADERS": {"user-agent": "hidden"}},
            "USER_AGENT = 'hidden' has no URL",
        ),
    ],
)
def test_user_agents_that_are_refused(settings: Mapping[str, Any], words: str) -> None:
    with pytest.raises(InputError, match="set one, such as -s USER_AGENT=") as refused:
        check_identity(Settings(dict(settings)))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_name_by_which_robots_txt_knows_us() -> None:
    settings = Settings({"USER_AGENT": "FooBot/1.0 (+https://foo.example/)"})
    assert crawler_name(settings) == "foobot"
    settings.set("DEFAULT_REQUEST_HEADERS", {"USER-Agent": "BarBot (+https://foo.example/)"})
    assert user_agent(settings).startswith("BarBot")
    assert crawler_name(settings) == "barbot"
    settings.set("ROBOTSTXT_USER_AGENT", "Other/1.0")
    assert crawler_name(settings) == "other"


def test_the_live_profile_asks_who_runs_it(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds"
    seeds.write_text("http://127.0.0.1:9/\n")
    args = ["crawl", "influence", "-a", f"seeds={seeds}", "-s", f"SCORER={SCORER}", "-s", f"OUTPUT_DIR={tmp_path}/run"]
    result = scrapy(*args, env={"SCRAPY_PROJECT": "live"})
    said = "USER_AGENT = 'crawl4llm' has no URL or mail address of the crawl's operator; set"
    assert error_of(result).startswith(said)
    assert result.stdout == ""
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("args", [["--help"], ["-s", "DRY_RUN=1"]])
def test_what_asks_nobody_needs_no_name(args: list[str]) -> None:
    result = scrapy("crawl", "influence", *args, env={"SCRAPY_PROJECT": "live"})
    assert "USER_AGENT = " not in result.stdout + result.stderr
    assert ("Usage" in result.stdout) is (args == ["--help"])


def test_the_user_agent_is_sent_and_archived(tmp_path: Path) -> None:
    agent = "foobot/1.0 (+https://foo.example/)"
    with serve(PAGE) as site:
        result = crawl_live([f"{site.url}/page"], tmp_path / "run", USER_AGENT=agent, WARC_COMPRESSION="zstd")
    assert result.returncode == 0, result.stderr
    assert [headers["User-Agent"] for headers in site.headers] == [agent, agent, agent]


def test_the_page_for_webmasters_is_whole() -> None:
    """It says what a webmaster asks, and what is to be filled in is in one form."""
    text = (PROJECT / "docs/webmasters.md").read_text()
    for word in ("User-agent: CRAWLER", "robots.txt", "CONTACT", "OPERATOR"):
        assert word in text


# -- certificates -----------------------------------------------------------------------------------------------------


def reason(output: Path) -> str:
    (line,) = (output / "failures.jsonl").read_text().splitlines()
    return str(json.loads(line)["reason"])


@pytest.mark.parametrize("obey", [1, 0])
@pytest.mark.parametrize("kind", ["unknown", "expired", "of another", "nameless"])
def test_certificates_are_verified(tmp_path: Path, kind: str, obey: int) -> None:
    """One that nobody we trust has signed; one that has expired; one that is for another address; one that names none
    but as its owner's name (RFC 9110, 4.3.4)."""
    address = "127.0.0.2" if kind == "of another" else "127.0.0.1"
    certificate = make_certificate(tmp_path, address=address, expired=kind == "expired", names=kind != "nameless")
    trusted = {} if kind == "unknown" else {"SSL_CERT_FILE": str(certificate)}
    with serve_tls(certificate, PAGE) as (url, asked):
        result = crawl_live([f"{url}/page"], tmp_path / "run", trusted, ROBOTSTXT_OBEY=obey)
    assert result.returncode == 1
    assert asked == []
    assert reason(tmp_path / "run") == "certificate"
    assert stats(tmp_path / "run")["failed/certificate"] == 1
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run/errors.log").exists()


def test_a_certificate_that_is_trusted(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    with serve_tls(certificate, PAGE) as (url, asked):
        result = crawl_live([f"{url}/page"], tmp_path / "run", {"SSL_CERT_FILE": str(certificate)})
    assert result.returncode == 0, result.stderr
    assert asked == ["/robots.txt", "/page", "/.well-known/tdmrep.json"]
    assert len(crawl_log(tmp_path / "run")) == 1


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2"])
def test_certificates_need_not_be_verified(tmp_path: Path, address: str) -> None:
    """Scrapy's own setting: it warns where the certificate is for another host, and goes on."""
    with serve_tls(make_certificate(tmp_path, address=address), PAGE) as (url, asked):
        result = crawl_live([f"{url}/page"], tmp_path / "run", DOWNLOAD_VERIFY_CERTIFICATES=0)
    assert result.returncode == 0, result.stderr
    assert asked == ["/robots.txt", "/page", "/.well-known/tdmrep.json"]
    assert ("Remote certificate is not valid" in result.stderr) is (address == "127.0.0.2")

"""What links and pages say of themselves, in live crawls of real servers, in replays of their archives, and in crawls
of those by several workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from addon_site import Answer
from continuous_cluster import merged, storage_at
from crawl_helpers import crawl, crawl_log, scrapy, stats
from export_helpers import documents, run_export
from live_helpers import SCORER, crawl_live, text_page
from owner_sites import serve_owners

ROBOTS = "/robots.txt"
SITEMAP = """<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
xmlns:xhtml="http://www.w3.org/1999/xhtml">{}</urlset>"""
RULES = {"SKIPPED_LINK_TYPES": "nofollow,ugc,sponsored", "CRAWL_LANGUAGES": "en"}


class Crawled(NamedTuple):
    """A finished crawl of the sites, which are served no longer."""

    output: Path
    url: str
    other: str
    asked: set[str]
    """Paths that were asked for, of the first site."""


def with_html(number: int, body: str = "", head: str = "", **headers: str) -> Answer:
    """A page with some HTML of its own in head and body."""
    html = text_page(number, []).body
    html = html.replace(b"</head>", f"{head}</head>".encode()).replace(b"</body>", f"{body}</body>".encode())
    return Answer(html, headers=headers)


def pages_of(url: str, other: str) -> dict[str, Answer]:
    """A site with everything that is heeded."""
    links = f"""<a href="/edit" rel="nofollow">edit</a> <a href="/comment" rel="external ugc nofollow">comment</a>
        <a href="/advert" rel="sponsored">advert</a> <a href="{other}/a" rel="nofollow">elsewhere</a>
        <a href="{other}/b" rel="nofollow ugc">spam</a> <a href="/list">list</a> <a href="/none">none</a>
        <a href="/both" rel="nofollow">once</a> <a href="/both">again</a> <a href="/header">header</a>
        <a href="/fr" hreflang="fr">fr</a> <a href="/en-gb" hreflang="en-GB">en</a> <a href="/de/page">de</a>"""
    german = f'<link rel="alternate" hreflang="de" href="{url}/de/page"><link rel=alternate hreflang=en href="{url}/">'
    own = f'<link rel="alternate" hreflang="de" href="{url}/leak"><link rel=alternate hreflang=en href="{url}/en">'
    noindex = '<meta name="robots" content="noindex">'
    return {
        "/": with_html(1, links + '<a href="/leak">leak</a>', german),
        "/list": with_html(2, '<a href="/listed">listed</a>', noindex),
        "/none": with_html(3, '<a href="/from-none">x</a>', noindex.replace("noindex", "none")),
        "/header": with_html(4, '<a href="/from-header">x</a>', **{"X-Robots-Tag": "noindex"}),
        "/leak": with_html(5, f'<a href="/leak-2">x</a><a href="/en">en</a><a href="{other}/c">y</a>', own),
        **{f"/{name}": text_page(10, []) for name in ("edit", "comment", "advert", "both", "fr", "en-gb", "de/page")},
        **{f"/{name}": text_page(11, []) for name in ("listed", "from-none", "from-header", "leak-2", "en")},
        **{f"/{name}": text_page(12, []) for name in ("map-en", "map-de", "map-x")},
        ROBOTS: Answer(f"User-agent: *\nSitemap: {url}/map.xml\n".encode(), content_type="text/plain"),
        "/map.xml": Answer(
            SITEMAP.format(
                "".join(
                    f"<url><loc>{url}/map-{name}</loc>"
                    + "".join(
                        f'<xhtml:link rel="alternate" hreflang="{tag}" href="{url}/map-{one}"/>'
                        for one, tag in (("en", "en-GB"), ("de", "de"), ("x", "x-default"))
                    )
                    + "</url>"
                    for name in ("en", "de", "x")
                )
            ).encode(),
            content_type="application/xml",
        ),
    }


def crawl_sites(output: Path, **settings: Any) -> Crawled:
    with serve_owners(2) as (site, other):
        site.pages = pages_of(site.url, other.url)
        other.pages = {f"/{name}": text_page(13, []) for name in "abc"}
        more = {"CRAWL_MAX_PAGES": 500, "CRAWL_BATCH_SIZE": 0, "SITEMAPS": 50, **settings}
        done = crawl_live([f"{site.url}/"], output, **more)
        assert done.returncode == 0, done.stderr[-3000:]
        asked = {*site.begun, *(f"other{path}" for path in other.begun)}
        return Crawled(output, site.url, other.url, {path for path in asked if not path.endswith((ROBOTS, ".json"))})


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Crawled]]:
    """As the profile has it; with the pages archived; and without any of the rules."""
    folder = tmp_path_factory.mktemp("said")
    off = {**dict.fromkeys(RULES, ""), "NOINDEX": "count"}
    variants = {"drop": {}, "archive": {"NOINDEX": "archive"}, "off": off}
    yield {name: crawl_sites(folder / name, **settings) for name, settings in variants.items()}


def ends(crawled: Crawled) -> dict[str, str]:
    lines = [json.loads(line) for line in (crawled.output / "failures.jsonl").read_text().splitlines()]
    return {line["id"].removeprefix(crawled.url): line["reason"] for line in lines}


KEPT = {"/", "/both", "/en-gb", "/en", "/listed", "/from-header", "/map-en", "/map-x", "other/a", "other/c"}
UNCOUNTED = {"/list", "/none", "/header"}


def test_the_live_profile_asks_for_what_is_of_use(crawls: dict[str, Crawled]) -> None:
    crawled = crawls["drop"]
    asked = crawled.asked - {"/map.xml"}
    assert asked == KEPT | UNCOUNTED | {"/leak"}
    assert len(crawl_log(crawled.output)) == len(KEPT)
    assert ends(crawled) == {"/list": "noindex", "/none": "noindex", "/header": "noindex", "/leak": "language"}
    figures = stats(crawled.output)
    counted = {"links/nofollow_own": 2, "links/ugc": 1, "links/sponsored": 1, "links/language": 4, "links/nofollow": 1}
    assert {key: figures[key] for key in counted} == counted
    assert (figures["dropped/noindex"], figures["dropped/language"]) == (3, 1)


def test_without_the_rules_all_is_asked_for(crawls: dict[str, Crawled]) -> None:
    crawled = crawls["off"]
    left = {"/edit", "/comment", "/advert", "/fr", "/de/page", "/leak-2", "/map-de", "other/b"}
    assert crawled.asked - {"/map.xml"} == KEPT | UNCOUNTED | {"/leak"} | left
    assert ends(crawled) == {}


def test_pages_that_do_not_count_are_archived_and_never_exported(crawls: dict[str, Crawled], tmp_path: Path) -> None:
    crawled = crawls["archive"]
    log = crawl_log(crawled.output)
    assert {line["id"].removeprefix(crawled.url) for line in log if line["noindex"]} == UNCOUNTED
    assert stats(crawled.output)["pages/uncounted"] == 3
    assert scrapy("archive", "check", str(crawled.output)).returncode == 0
    run_export(tmp_path / "out", crawled.output, keep_duplicates=True)
    exported = {document["id"].removeprefix(crawled.url) for document in documents(tmp_path / "out")}
    assert {"/both", "/"} <= exported
    assert not exported & UNCOUNTED


def test_explain_names_the_rule(crawls: dict[str, Crawled]) -> None:
    crawled = crawls["drop"]
    for path, rule in (("/header", "NOINDEX drop"), ("/leak", "CRAWL_LANGUAGES en: hreflang de")):
        told = scrapy("explain", f"{crawled.url}{path}", "--run", str(crawled.output))
        assert (told.returncode, rule in told.stdout) == (0, True), told.stdout + told.stderr


def replayed(crawled: Crawled, output: Path, **settings: Any) -> set[str]:
    """Crawl the archive again, and return the documents that were crawled."""
    seeds = output.with_suffix(".txt")
    seeds.write_text(f"{crawled.url}/\n")
    given = {"CORPUS": crawled.output, "SCORER": SCORER, "SIMULATION_TEXT": "extracted", "CRAWL_MAX_PAGES": 500}
    done = crawl(None, output, seeds, **given, URL_POLICY="parent_first", **settings)
    assert done.returncode == 0, done.stderr
    out = output
    if "STORAGE" in settings:
        merged({"STORAGE": settings["STORAGE"]}, out := output.with_name(f"{output.name}-merged"))
    return {line["id"].replace(crawled.other, "other").removeprefix(crawled.url) for line in crawl_log(out)}


@pytest.mark.parametrize("batch_size", [0, 3])
def test_replays_go_by_the_rules_on_several_partitions_too(
    crawls: dict[str, Crawled], tmp_path: Path, batch_size: int
) -> None:
    """A sitemap is not in a replay, nor what only that leads to."""
    for noindex in ("archive", "drop"):
        rules = {**RULES, "NOINDEX": noindex, "CRAWL_BATCH_SIZE": batch_size}
        expected = (KEPT | (UNCOUNTED if noindex == "archive" else set())) - {"/map-en", "/map-x"}
        assert replayed(crawls["off"], tmp_path / noindex, **rules) == expected
        storage = storage_at(tmp_path / f"of-{noindex}", 4)
        assert replayed(crawls["off"], tmp_path / f"w{noindex}", **rules, **storage) == expected

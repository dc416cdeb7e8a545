"""Opt-outs in live crawls of real servers: what is asked for, what is archived, what is followed, and what is noted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from addon_site import Answer
from crawl_helpers import crawl_log, stats
from export_helpers import documents, run_export
from live_helpers import crawl_live, text_page
from owner_sites import OwnerSite, serve_owners
from scrapy.http import Response
from stranger import Verdicts
from warcio.archiveiterator import ArchiveIterator

from crawl4llm.live.places import Later
from crawl4llm.live.robots_copies import FRESH
from crawl4llm.live.robots_store import RobotsStore
from crawl4llm.live.tdmrep import TdmFiles
from crawl4llm.optouts.robots_rules import ALLOW_ALL
from crawl4llm.optouts.said import from_text
from crawl4llm.optouts.tdmrep import PATH

ROBOTS = "/robots.txt"
LIMITS = {"CRAWL_MAX_PAGES": 500}
PAGES = 4
"""Pages in a chain, before those that a file of their site speaks of."""

# Of a page: the header and the tag that it has; what is done with it, and with OPT_OUT_FETCH = 1 and pages with noindex
# archived.
UNINDEXED = "noindex, followed"
KEPT, NOT_FOLLOWED, GONE = "archived, followed", "archived", "opt_out"
PAGES_WITH_SIGNALS = {
    "plain": ("", "", KEPT, KEPT),
    "noai-header": ("X-Robots-Tag: noai", "", GONE, KEPT),
    "noai-for-another": ("X-Robots-Tag: otherbot: noai", "", KEPT, KEPT),
    "noai-for-us": ("X-Robots-Tag: TestBot: noai", "", GONE, KEPT),
    "noai-meta": ("", '<meta name="robots" content="noai">', GONE, KEPT),
    "noindex": ("X-Robots-Tag: noindex", "", UNINDEXED, KEPT),
    "nofollow": ("", '<meta name="ROBOTS" content="NoFollow">', NOT_FOLLOWED, NOT_FOLLOWED),
    "none-for-us": ("", '<meta name="testbot" content="none">', "noindex", NOT_FOLLOWED),
    "noarchive": ("X-Robots-Tag: noarchive", "", GONE, GONE),
    "usage": ("Content-Usage: search=y, train-ai=n", "", GONE, KEPT),
    "malformed-usage": ("Content-Usage: train-ai=n,", "", KEPT, KEPT),
    "signal": ("Content-Signal: ai-train=no", "", GONE, KEPT),
    "tdm-header": ("TDM-Reservation: 1", "", GONE, KEPT),
    "tdm-meta": ("", '<meta name="tdm-reservation" content="1">', GONE, KEPT),
    "rsl": ('Link: <https://example.com/l.xml>; rel="license"; type="application/rsl+xml"', "", KEPT, KEPT),
    "contradiction": ("Content-Usage: train-ai=y", '<meta name="robots" content="all, noai">', GONE, KEPT),
}
# Of a site: its robots.txt; how a page in /closed/ ends, and one outside of it.
SITES = {
    "content-signal": ("User-agent: *\nContent-Signal: search=yes,ai-train=no\nAllow: /\n", GONE, GONE),
    "content-usage": ("User-agent: *\nContent-Usage: /closed/ train-ai=n\nAllow: /\n", GONE, KEPT),
    "training-crawler": ("User-agent: *\nAllow: /\n\nUser-agent: GPTBot\nDisallow: /closed/\n", GONE, KEPT),
    "robots": ("User-agent: *\nDisallow: /closed/\nContent-Signal: ai-train=yes\n", "robots", KEPT),
}
# Answers to the request for tdmrep.json that are no file of rules.
NO_RULES = {
    "no-rules-10-mb": Answer(b'[{"location": "/", "tdm-reservation": 1}]' + b" " * 10_000_000),
    "no-rules-deep": Answer(b"[" * 200_000),
    "no-rules-html": Answer(b"<p>not here"),
    "no-rules-busy": Answer(b"busy", 503),
    "no-rules-loop": Answer(b"", 301, headers={"Location": PATH}),
    "no-rules-elsewhere": Answer(b"", 301, headers={"Location": "http://127.0.0.99:9/tdmrep.json"}),
}


class Crawled(NamedTuple):
    """A finished crawl of the sites, which are served no longer."""

    output: Path
    sites: Mapping[str, OwnerSite]
    ends: Mapping[str, str]
    """How each document has ended, by its key."""
    signals: Mapping[str, str]
    """The field opt-out-signals of archived pages, by key."""
    warcinfo: str

    def end(self, site: str, path: str) -> str:
        """What was done with a page, and the page that it alone links to."""
        end = self.ends[f"{self.sites[site].url}{path}"]
        followed = f"/from{path}" in self.sites[site].begun
        return f"{end}, followed" if followed else end


def signal_page(name: str, header: str, tag: str) -> Answer:
    answer = text_page(len(name), [f"/from/{name}"])
    field, _, value = header.partition(": ")
    body = answer.body.replace(b"</head>", f"{tag}</head>".encode())
    return answer._replace(body=body, headers={field: value} if header else {})


def text_file(text: str, content_type: str = "text/plain") -> Answer:
    return Answer(text.encode(), content_type=content_type)


def tdm_site() -> dict[str, Answer]:
    """Some pages in a chain; what is in /closed/ is found last."""
    pages = {f"/{n}": text_page(n, [f"/{n + 1}"]) for n in range(PAGES)}
    last = text_page(60, ["/closed/a", "/open/a"])
    rules = '[{"location": "/closed/", "tdm-reservation": 1}, {"location": "/", "tdm-reservation": 0}]'
    return {**pages, f"/{PAGES}": last, "/closed/a": text_page(61, []), "/open/a": text_page(62, [])} | {
        "/files/tdmrep.json": text_file(rules, "application/json"),
        PATH: Answer(b"", 302, headers={"Location": "/files/tdmrep.json"}),
    }


def crawl(output: Path, sites: Mapping[str, OwnerSite], **settings: object) -> Crawled:
    for name, (header, tag, *_) in PAGES_WITH_SIGNALS.items():
        page = signal_page(name, header, tag)
        sites["pages"].pages = {**sites["pages"].pages, f"/{name}": page, f"/from/{name}": text_page(3, [])}
    for name, (robots, *_) in SITES.items():
        pages = {path: text_page(5, [f"/from{path}"]) for path in ("/closed/a", "/open/a")}
        pages |= {f"/from{path}": text_page(6, []) for path in pages}
        sites[name].pages = {**pages, ROBOTS: text_file(robots)}
    moved = {"/moved": Answer(b"", 302, headers={"Location": "/closed/target"}), "/closed/target": text_page(7, [])}
    sites["content-usage"].pages = {**sites["content-usage"].pages, **moved}
    for name in ("tdm", "tdm-closed", *NO_RULES):
        sites[name].pages = tdm_site() | ({PATH: NO_RULES[name]} if name in NO_RULES else {})
    sites["tdm-closed"].pages = {**tdm_site(), ROBOTS: text_file("User-agent: *\nDisallow: /.well-known/\n")}
    seeds = [f"{sites['pages'].url}/{name}" for name in PAGES_WITH_SIGNALS]
    seeds += [f"{sites[name].url}{path}" for name in SITES for path in ("/closed/a", "/open/a")]
    seeds += [f"{sites[name].url}/0" for name in ("tdm", "tdm-closed", *NO_RULES)]
    done = crawl_live([*seeds, f"{sites['content-usage'].url}/moved"], output, **LIMITS, **settings)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in (output / "failures.jsonl").read_text().splitlines()]
    ends = {**{line["id"]: "archived" for line in crawl_log(output)}, **{line["id"]: line["reason"] for line in lines}}
    signals, warcinfo = archived_signals(output)
    return Crawled(output, sites, ends, signals, warcinfo)


def archived_signals(output: Path) -> tuple[dict[str, str], str]:
    found, warcinfo = {}, ""
    for path in sorted((output / "warc").glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                text = record.content_stream().read().decode() if record.rec_type in {"metadata", "warcinfo"} else ""
                fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
                if record.rec_type == "warcinfo":
                    warcinfo = fields["opt-out"]
                elif "id" in fields and "opt-out-signals" in fields:
                    found[fields["id"]] = fields["opt-out-signals"]
    return found, warcinfo


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, Crawled]]:
    """In batches, by default; and in continuous order with OPT_OUT_FETCH = 1, pages with noindex archived."""
    folder = tmp_path_factory.mktemp("opt-outs")
    found = {}
    fetching = {"OPT_OUT_FETCH": 1, "CRAWL_BATCH_SIZE": 0, "NOINDEX": "archive"}
    for fetch, settings in ((False, {}), (True, fetching)):
        with ExitStack() as served:
            names = ["pages", "tdm", "tdm-closed", *NO_RULES, *SITES]
            sites = dict(zip(names, served.enter_context(serve_owners(len(names))), strict=True))
            found[fetch] = crawl(folder / f"{fetch}", sites, **settings)
    yield found


@pytest.mark.parametrize("fetch", [False, True])
def test_what_a_page_says_of_itself(crawls: dict[bool, Crawled], fetch: bool) -> None:
    for name, (_, _, expected, with_fetch) in PAGES_WITH_SIGNALS.items():
        assert crawls[fetch].end("pages", f"/{name}") == (with_fetch if fetch else expected), name
    assert stats(crawls[fetch].output)["links/nofollow"] == 2


@pytest.mark.parametrize("fetch", [False, True])
def test_what_is_known_before_the_fetch_is_not_asked_for(crawls: dict[bool, Crawled], fetch: bool) -> None:
    for name, (_, *expected) in SITES.items():
        for path, end in zip(("/closed/a", "/open/a"), expected, strict=True):
            wanted = KEPT if fetch and end == GONE else end
            assert crawls[fetch].end(name, path) == wanted, (name, path)
            assert (path in crawls[fetch].sites[name].begun) == (wanted == KEPT)
    site, ends = crawls[fetch].sites["content-usage"], crawls[fetch].ends
    assert ends[f"{site.url}/{'closed/target' if fetch else 'moved'}"] == ("archived" if fetch else GONE)
    assert ("/closed/target" in site.begun) is fetch
    assert crawls[False].sites["content-signal"].begun == [ROBOTS]


@pytest.mark.parametrize("fetch", [False, True])
def test_tdmrep_json_is_asked_for_once_with_the_first_page(crawls: dict[bool, Crawled], fetch: bool) -> None:
    site = crawls[fetch].sites["tdm"]
    asked = site.begun
    assert asked[: 4 + PAGES] == [ROBOTS, "/0", PATH, "/files/tdmrep.json", *(f"/{n}" for n in range(1, PAGES + 1))]
    assert asked.count(PATH) == 1
    assert ("/closed/a" in asked) is fetch
    assert crawls[fetch].ends[f"{site.url}/closed/a"] == ("archived" if fetch else GONE)
    assert crawls[fetch].ends[f"{site.url}/open/a"] == "archived"
    for name in SITES:
        assert crawls[fetch].sites[name].begun.count(PATH) == (fetch or name != "content-signal")


def test_answers_to_the_request_for_tdmrep_json(crawls: dict[bool, Crawled]) -> None:
    """What is no file of rules says nothing, and keeps no page from being crawled; robots.txt may close it."""
    sites = crawls[False].sites
    for name in ("tdm-closed", *NO_RULES):
        assert "/closed/a" in sites[name].begun
        assert (PATH in sites[name].begun) is (name in NO_RULES)
    files = [path for site in sites.values() for path in site.begun if path.endswith((ROBOTS, "/tdmrep.json"))]
    assert json.loads((crawls[False].output / "stats.json").read_text())["robotstxt/request_count"] == len(files)


def test_archived_pages_are_marked(crawls: dict[bool, Crawled]) -> None:
    marked = {
        fetch: {key.partition("/")[2].partition("/")[2]: text for key, text in crawls[fetch].signals.items()}
        for fetch in crawls
    }
    of = {fetch: {key.split("/", 1)[1]: text for key, text in marked[fetch].items()} for fetch in marked}
    assert of[False] == {
        "nofollow": "meta * page robots nofollow",
        "rsl": "header * page RSL https://example.com/l.xml",
    }
    assert of[True]["noindex"] == "header * page robots noindex"
    assert of[True]["none-for-us"] == "meta testbot page robots none"
    site = crawls[True].sites["content-usage"].url
    assert crawls[True].signals[f"{site}/closed/a"] == "robots.txt * /closed/ Content-Usage train-ai=n"
    site = crawls[True].sites["tdm"].url
    assert crawls[True].signals[f"{site}/closed/a"] == "tdmrep.json * /closed/ tdm-reservation 1"
    assert of[True]["usage"] == "header * page Content-Usage train-ai=n"
    assert all(from_text(text) for text in of[True].values())
    for fetch, word in ((False, "not fetched, or not kept"), (True, "recorded, and left out of exports")):
        assert word in crawls[fetch].warcinfo


def test_a_resumed_crawl_remembers_what_sites_have_said(tmp_path: Path) -> None:
    """Neither robots.txt nor tdmrep.json is asked for again, and both hold."""
    with serve_owners(1) as (site,):
        closed = "User-agent: *\nContent-Signal: /not/ ai-train=no\n"
        site.pages = {**tdm_site(), ROBOTS: text_file(closed), "/not/a": text_page(1, [])}
        site.pages[f"/{PAGES}"] = text_page(60, ["/closed/a", "/open/a", "/not/a"])
        job = {"JOBDIR": tmp_path / "job", "CRAWL_BATCH_SIZE": 0, "DOWNLOAD_DELAY": 0.1}
        for most in (PAGES + 1, 500):
            done = crawl_live([f"{site.url}/0"], tmp_path / "out", CRAWL_MAX_PAGES=most, **job)
            assert done.returncode == 0, done.stderr[-3000:]
        chain = (f"/{n}" for n in range(1, PAGES + 1))
        assert site.begun == [ROBOTS, "/0", PATH, "/files/tdmrep.json", *chain, "/open/a"]
        assert min(site.gaps()) > 0.095  # between the processes, and around both files
        requests = "".join(path.read_text() for path in (tmp_path / "job/requests").glob("*.jsonl"))
    assert [json.loads(line)["for"] for line in requests.splitlines()].count("tdmrep.json") == 2


@pytest.mark.parametrize("fetch", [False, True])
def test_a_stranger_can_tell_why_by_the_archive(crawls: dict[bool, Crawled], fetch: bool) -> None:
    """Each fetch and each refusal follows from records of the archive, by a script that imports nothing of ours."""
    found = Verdicts(crawls[fetch].output, "testbot", opt_outs=not fetch)
    assert found.problems == []
    refused = sum(end in {"robots", GONE} for end in crawls[fetch].ends.values())
    assert found.derived["refusals"] == refused > (0 if fetch else 10)
    assert found.derived["fetches"] >= list(crawls[fetch].ends.values()).count("archived")
    if fetch:
        assert len(Verdicts(crawls[fetch].output, "testbot", opt_outs=True).problems) > 10


def test_an_export_leaves_out_what_is_marked(crawls: dict[bool, Crawled], tmp_path: Path) -> None:
    run_export(tmp_path / "out", crawls[True].output, keep_duplicates=True)
    exported = {document["id"] for document in documents(tmp_path / "out")}
    site = crawls[True].sites["pages"].url
    kept = {name for name, (_, _, end, _) in PAGES_WITH_SIGNALS.items() if end != GONE} - {"noindex", "none-for-us"}
    assert {key.rpartition("/")[2] for key in exported if key.startswith(f"{site}/") and "/from/" not in key} == kept
    for name, (_, *ends) in SITES.items():
        gone = {path for path, end in zip(("/closed/a", "/open/a"), ends, strict=True) if end == GONE}
        assert exported.isdisjoint(f"{crawls[True].sites[name].url}{path}" for path in gone)


@pytest.mark.parametrize("lasting", [False, True])
def test_an_older_file_holds_while_there_is_no_answer(tmp_path: Path, lasting: bool) -> None:
    """It is asked for with the first page that is kept of its site, and anew after a day, before a page is; one that is
    gone holds no more."""
    now, url = [1e9], "http://h.example/a"
    answers = [
        Response(url, 200, body=b'[{"location": "/", "tdm-reservation": 1}]'),
        Response(url, 503),
        Later("no answer", "timeout"),
        Response(url, 404),
    ]
    asked = []

    async def send(file: str, site: str) -> tuple[Response, str | None]:
        asked.append(file)
        answer = answers[len(asked) - 1]
        if isinstance(answer, Later):
            raise answer
        return answer, f"sha1:A {site}"

    async def reserved(files: TdmFiles) -> list[bool]:
        found = []
        for _ in answers[1:]:
            now[0] += FRESH
            with suppress(Later):
                await files.said(url, ALLOW_ALL)
            for one in (url, "http://i.example/"):
                said, source = await files.said(one, ALLOW_ALL)
                found.append(bool(said))
                assert source == "sha1:A http://h.example" or not said
        return found

    store = RobotsStore(tmp_path) if lasting else None
    files = TdmFiles(send, store, lambda: now[0])
    for number in range(20):
        assert asyncio.run(files.said(f"{url}/{number}", ALLOW_ALL)) == ([], None)
    assert asked == []
    said, source = asyncio.run(files.said_of_page(url, ALLOW_ALL))
    assert (len(said), source) == (1, "sha1:A http://h.example")
    if lasting:  # another process goes on
        files = TdmFiles(send, store, lambda: now[0])
    assert asyncio.run(files.said_of_page(url, ALLOW_ALL))[0] == asyncio.run(files.said(url, ALLOW_ALL))[0] == said
    assert asyncio.run(reserved(files)) == [True, False, True, False, False, False]
    assert asked == [f"http://h.example{PATH}"] * 4


@pytest.mark.parametrize(("error", "is_kept"), [("timeout", True), ("held", False), (None, False)])
def test_a_page_is_kept_whose_site_does_not_answer(error: str | None, is_kept: bool) -> None:
    """It waited for the file, of which nothing is known then. A file that could not be asked for is asked for again."""
    asked = []

    async def send(file: str, site: str) -> tuple[Response, str | None]:
        asked.append(file)
        raise Later("no answer", error)

    files = TdmFiles(send, None, lambda: 1e9)
    for _ in range(2):
        if is_kept:
            assert asyncio.run(files.said_of_page("http://h.example/a", ALLOW_ALL)) == ([], None)
        else:
            with pytest.raises(Later):
                asyncio.run(files.said_of_page("http://h.example/a", ALLOW_ALL))
    assert len(asked) == (1 if is_kept else 2)

"""Parts of a crawl in someone else's Scrapy project: what they say of its requests and pages."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from addon_project import Crawled, Project, crawl, scrapy
from addon_site import Answer, page, serve
from crawl_helpers import PROJECT
from live_helpers import moved

PARTS = '''
from crawl4llm.parts import Part, Refusal

class Quota(Part):
    """Crawls PAGES pages of a folder, and ends at the first page named last."""
    name = "quota"
    SETTINGS = {"PAGES": 3}
    REASONS = {"quota": "the folder has given PAGES pages"}
    COUNTS = {"quota/folders": "folders"}
    ENDS = {"last_page": "a page named last was crawled"}
    def begin(self):
        self.found, self.last = {}, False
    def admits(self, candidate):
        folder = candidate.url.rpartition("/")[0]
        self.found[folder] = self.found.get(folder, 0) + 1
        return Refusal("quota") if self.found[folder] > self.options.own["PAGES"] else None
    def rated(self, place, page):
        page.line["place"] = place
    def crawled(self, entry, page):
        self.last |= entry.url.endswith("last")
    def finished(self):
        return "last_page" if self.last else None
    def figures(self, figures):
        return {"quota/folders": len(self.found)}
    def identity(self):
        return {"kind": "quota"}

class Raises(Part):
    name = "raises"
    def admits(self, candidate):
        raise OSError("no such\\nluck")

class RaisesLate(Part):
    name = "raises_late"
    def figures(self, figures):
        raise KeyError("gone")

class Leases(Part):
    name = "leases"
    def lease(self, entry):
        return "nothing"
'''


def failures(crawled: Crawled) -> Counter[tuple[str, str]]:
    """What was dropped, by the end of the URL and the reason."""
    lines = [json.loads(line) for line in (crawled.output / "failures.jsonl").read_text().splitlines()]
    return Counter((line["url"].rpartition("/")[2], line["reason"]) for line in lines)


def web() -> dict[str, Answer]:
    links = ["/a", "/b", "/c.pdf", "/month?month=5", "/moved", "http://blocked.example/x", "/to-blocked", "/a"]
    return {
        "/": page(0.5, links),
        "/a": page(0.9, ["/from-a"], seed=1),
        "/b": page(0.9, ["/from-b"], seed=1),  # the text of /a
        "/moved": moved("/d.pdf"),
        "/to-blocked": moved("http://www.blocked.example/y"),
        **{path: page(0.9, ["/c.pdf"], seed=2) for path in ("/from-a", "/from-b")},
    }


GIVEN = {
    "URL_TRAPS": "calendar",
    "SCOPE_SKIPPED_TYPES": "documents",
    "NEAR_DUPLICATES": "leave",
    "QUALITY_THRESHOLD": "0",
    "ROBOTSTXT_OBEY": "0",
}


@pytest.mark.parametrize("scheduler", ["ours", "scrapy.core.scheduler.Scheduler"])
def test_parts_are_asked_about_requests_and_pages(
    project: Project,
    tmp_path: Path,
    scheduler: str,
) -> None:
    """Whoever has the queue: links, redirects and pages go by the settings that a crawl has too."""
    (tmp_path / "block.txt").write_text("blocked.example\n")
    settings = {**GIVEN, "BLOCKLISTS": str(tmp_path / "block.txt")}
    if scheduler != "ours":
        settings["SCHEDULER"] = scheduler
    with serve(web()) as site:
        given = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
        crawled = crawl(project, "links", site, tmp_path / "out", *given)
    of_copies = [path for path in site.paths() if path.startswith("/from-")]
    assert len(of_copies) == 1  # from whichever came first
    assert sorted({*site.paths()} - {*of_copies}) == ["/", "/a", "/b", "/moved", "/to-blocked"]
    assert failures(crawled) == {
        ("month?month=5", "trap"): 1,
        ("x", "blocklist"): 1,
        ("y", "blocklist"): 1,
        ("d.pdf", "off_scope"): 1,
    }
    figures = crawled.figures
    assert figures["dropped/blocklist"] == 2
    assert figures["dropped/trap"] == figures["links/trap/calendar"] == figures["pages/near_duplicates"] == 1
    assert figures["links/file_type"] == (2 if scheduler == "ours" else 1)  # Scrapy drops the second one as a duplicate
    assert figures["links/near_duplicate"] == 1
    assert figures["pages/new_quality"] == 3
    assert figures["new_quality/per_1000_fetches"] > 0
    assert "new quality" in crawled.stderr
    duplicates = [line for line in crawled.log if line["near_duplicate_of"] is not None]
    assert len(duplicates) == 1
    assert list((crawled.output / "blocklists").iterdir())
    assert json.loads((crawled.output / "settings.json").read_text())["url_traps"] == ["calendar"]


def test_parameters_that_bring_nothing_are_learnt(project: Project, tmp_path: Path) -> None:
    """Each page leads to the next, and to its form, which is not to be indexed and asked for first."""
    web = {"/": page(0.5, ["/w?title=T0"])}
    for number in range(30):
        title = f"/w?title=T{number}"
        web[title] = page(0.9, [f"/w?title=T{number + 1}", f"{title}&do=edit"], seed=number)
        form = page(0.9, seed=100 + number)
        noindex = b'<head><meta name="robots" content="noindex">'
        web[f"{title}&do=edit"] = form._replace(body=form.body.replace(b"<head>", noindex))
    settings: dict[str, object] = {"URL_WORTHLESS_PAGES": 5, "CONCURRENT_REQUESTS": 1, "ROBOTSTXT_OBEY": 0}
    settings["SCHEDULER"] = "scrapy.core.scheduler.Scheduler"
    with serve(web) as site:
        given = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
        crawled = crawl(project, "links", site, tmp_path / "out", *given)
    forms = {path for path in site.paths() if "do=edit" in path}
    dropped = {url for url, reason in failures(crawled) if reason == "alias"}
    assert {path for path in site.paths() if "do=edit" not in path} == {"/", *(f"/w?title=T{n}" for n in range(31))}
    assert 5 <= len(forms) < 20
    assert len(forms) + len(dropped) == 30
    assert crawled.figures["links/alias/worthless"] == len(dropped)


SAID = {"SKIPPED_LINK_TYPES": "nofollow,ugc", "CRAWL_LANGUAGES": "en", "ROBOTSTXT_OBEY": "0"}


def said_web() -> dict[str, Answer]:
    """A page with links of each kind, and pages that say noindex and that they are in German."""
    links = """<a href="/edit" rel="nofollow">1</a><a href="/spam" rel="ugc">2</a><a href="/de" hreflang="de">3</a>
        <a href="/list">4</a><a href="/leak">5</a><a href="/good">6</a></body>"""
    web = {f"/{name}": page(0.9, seed=len(name)) for name in ("edit", "spam", "de", "good", "listed", "leaked")}
    first = page(0.5)
    web["/"] = first._replace(body=first.body.replace(b"</body>", links.encode()))
    web["/list"] = page(0.9, ["/listed"], seed=9)._replace(headers={"X-Robots-Tag": "noindex"})
    leak = page(0.9, ["/leaked"], seed=8)
    alternate = b'<link rel="alternate" hreflang="de" href="/leak"></head>'
    web["/leak"] = leak._replace(body=leak.body.replace(b"</head>", alternate))
    return web


@pytest.mark.parametrize("noindex", ["drop", "archive"])
def test_what_links_and_pages_say_of_themselves(project: Project, tmp_path: Path, noindex: str) -> None:
    given = {**SAID, "NOINDEX": noindex, "URL_BUDGET": "50"}
    with serve(said_web()) as site:
        words = [word for name, value in given.items() for word in ("-s", f"{name}={value}")]
        crawled = crawl(project, "links", site, tmp_path / "out", *words)
    assert sorted(site.paths()) == ["/", "/good", "/leak", "/list", "/listed"]
    dropped = [("leak", "language")] + [("list", "noindex")] * (noindex == "drop")
    assert failures(crawled) == Counter(dropped)
    figures = crawled.figures
    assert (figures["links/nofollow_own"], figures["links/ugc"], figures["links/language"]) == (1, 1, 2)
    paths = {line["url"].rpartition("/")[2]: line for line in crawled.log}
    assert paths.keys() == {"", "good", "listed"} | ({"list"} if noindex == "archive" else set())
    assert figures.get("pages/uncounted", 0) == (noindex == "archive")
    assert paths["listed"]["priority"] == 0, "links of a page that does not count come last"
    assert paths["listed"]["order"] == len(paths) - 1


def parts(project: Project, tmp_path: Path, *names: str) -> list[str]:
    (project.root / "own_parts.py").write_text(PARTS)
    return ["-s", f"CRAWL_PARTS={','.join(f'own_parts.{name}' for name in names)}"]


def test_a_part_of_somebody_else(project: Project, tmp_path: Path) -> None:
    answers = {"/": page(0.5, [f"/folder/{number}" for number in range(9)] + ["/other/last"])}
    answers |= {path: page(0.5, seed=n) for n, path in enumerate(["/other/last", *(f"/folder/{n}" for n in range(9))])}
    with serve(answers) as site:
        crawled = crawl(project, "links", site, tmp_path / "out", *parts(project, tmp_path, "Quota"), "-s", "PAGES=2")
    assert crawled.stats["finish_reason"] == "last_page"
    assert sum(path.startswith("/folder/") for path in site.paths()) <= 2
    assert crawled.figures["dropped/quota"] == 7
    assert crawled.figures["quota/folders"] == 2
    assert [line["place"] for line in crawled.log] == list(range(len(crawled.log)))
    facts = json.loads((crawled.output / "settings.json").read_text())
    assert facts["parts"] == {"own_parts.Quota": {"kind": "quota"}}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["Raises"], "the part own_parts.Raises raised OSError: no such"),
        (["Leases"], "CRAWL_PARTS: own_parts.Leases sets documents aside"),
        (["Missing"], "CRAWL_PARTS = 'own_parts.Missing' cannot be loaded"),
    ],
)
def test_a_part_that_cannot_be_had_ends_the_crawl(
    project: Project,
    tmp_path: Path,
    names: list[str],
    said: str,
) -> None:
    with serve(web()) as site:
        given = ["-a", f"site={site.url}", "-s", f"OUTPUT_DIR={tmp_path / 'out'}", *parts(project, tmp_path, *names)]
        result = scrapy("crawl", "links", *given, cwd=project.root)
    assert f"ERROR: {said}" in result.stderr
    assert "'finish_reason': 'bad_input'" in result.stderr
    assert len(site.paths()) <= 2  # robots.txt, and the start page before a part was asked


def test_what_is_known_is_dropped_or_noted(project: Project, tmp_path: Path) -> None:
    """As in a crawl: links to known documents are dropped, and pages with a known text are counted."""
    with serve({"/": page(0.5, ["/a", "/b"]), "/a": page(0.9, seed=1), "/b": page(0.9, seed=2)}) as site:
        first = crawl(project, "links", site, tmp_path / "first")
        known = str(tmp_path / "known")
        made = scrapy("corpus", "known", known, str(first.output), "--extract", cwd=PROJECT)
        assert made.returncode == 0, made.stderr
        texts = crawl(project, "links", site, tmp_path / "texts", "-s", f"KNOWN_TEXTS={known}/texts.known")
        urls = crawl(project, "links", site, tmp_path / "urls", "-s", f"KNOWN_URLS={known}/urls.known")
    assert [line["known_text"] for line in texts.log] == [True] * 3
    assert texts.figures["pages/known_text"] == 3
    assert "known texts 3 of 3 pages" in texts.stderr
    assert [line["depth"] for line in urls.log] == [0]
    assert failures(urls) == {("a", "known_url"): 1, ("b", "known_url"): 1}
    assert urls.figures["dropped/known_url"] == 2
    assert 0 <= urls.figures["links/taken_for_known"] < 0.01
    assert "known URLs 2 dropped, of which 0 are not known" in urls.stderr


@pytest.mark.parametrize("spider", ["links", "copies"])
def test_links_of_known_pages_are_followed_without_a_request(project: Project, tmp_path: Path, spider: str) -> None:
    """Its callback gets a response with the links alone, and its items are not kept. A page has its parent's score if
    the file has none, and a redirect ends at a known page."""
    pages: dict[str, Answer] = {
        "/": page(0.5, ["/a", "/b", "/moved"]),
        "/a": page(0.9, ["/new"], seed=1),
        "/b": page(0.9, ["/from-b"], seed=2),
        "/from-b": page(0.9, ["/a"], seed=4),
        "/moved": moved("/b"),
        "/new": page(0.9, ["/newer"], seed=3),
        "/newer": page(0.9, ["/"], seed=5),
    }
    with serve(pages) as site:
        first = crawl(project, spider, site, tmp_path / "first", "-s", "SCOPE_DENY=/(new|moved)$")
        known = str(tmp_path / "known")
        made = scrapy("corpus", "known", "--links", known, str(first.output), cwd=PROJECT)
        assert made.returncode == 0, made.stderr
        before = len(site.paths())
        given = ["-s", f"KNOWN_LINKS={known}/links.known", "-s", "URL_BUDGET=2"]
        again = crawl(project, spider, site, tmp_path / "again", *given)
        asked = [path for path in site.paths()[before:] if path != "/robots.txt"]
    assert {line["url"].rpartition("/")[2] for line in first.log} == {"", "a", "b", "from-b"}
    assert sorted(asked) == ["/moved", "/new", "/newer"]
    assert [line["url"].rpartition("/")[2] for line in again.log] == ["new", "newer"]
    assert [one["path"] for one in again.items] == ["/new", "/newer"]
    influence = {line["url"].rpartition("/")[2]: line["influence"] for line in first.log}
    assert again.log[0]["priority"] == influence["a"]
    assert Counter(reason for _, reason in failures(again).elements()) == {"known_page": 5}
    assert again.figures["dropped/known_page"] == 5
    assert "known pages 5, whose links were followed" in again.stderr


def test_a_request_is_asked_about_once(project: Project, tmp_path: Path) -> None:
    """One that is tried again is the same link; one whose spider copied the meta of a redirected page is a new one."""
    answers: dict[str, Answer | list[Answer]] = {
        "/": page(0.5, ["/moved", "/folder/flaky"]),
        "/folder/flaky": [Answer(b"", 503), Answer(b"", 503), page(0.5, seed=1)],
        "/moved": moved("/landed"),
        "/landed": page(0.5, [f"/landed-{number}/x" for number in range(3)], seed=2),
        **{f"/landed-{number}/x": page(0.5, seed=3 + number) for number in range(3)},
    }
    with serve(answers) as site:
        given = [*parts(project, tmp_path, "Quota"), "-s", "PAGES=1", "-s", "URL_TRAPS=calendar"]
        crawled = crawl(project, "copies", site, tmp_path / "out", *given)
    assert site.paths().count("/folder/flaky") == 3
    assert "dropped/quota" not in crawled.figures
    assert crawled.figures["quota/folders"] == 5
    assert crawled.figures["links/new"] == 5


def test_a_part_that_raises_at_the_end_loses_no_figures(project: Project, tmp_path: Path) -> None:
    with serve({"/": page(0.5)}) as site:
        crawled = crawl(project, "links", site, tmp_path / "out", *parts(project, tmp_path, "RaisesLate"))
    assert "ERROR: the part own_parts.RaisesLate raised KeyError" in crawled.stderr
    assert crawled.figures["pages/crawled"] == 1


def test_sites_of_a_software_are_recognised(project: Project, tmp_path: Path) -> None:
    """By the pages that were archived: what their software makes of its own pages is not asked for from then on."""

    def of_wordpress(answer: Answer) -> Answer:
        return answer._replace(
            body=answer.body.replace(b"<head>", b'<head><meta name="generator" content="WordPress">')
        )

    answers = {
        "/": of_wordpress(page(0.5, ["/a/"])),
        "/a/": of_wordpress(page(0.5, ["/b/"], seed=1)),
        "/b/": of_wordpress(page(0.5, ["/c/", "/feed/", "/tag/x/", "/c/?replytocom=3", "/denied/"], seed=2)),
        "/c/": of_wordpress(page(0.5, seed=3)),
    }
    settings = {"SITE_RULES": "blogs", "SCOPE_DENY": "/denied/", "SCOPE_ALLOW": "/tag/"}
    with serve(answers) as site:
        given = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
        crawled = crawl(project, "links", site, tmp_path / "out", *given)
    assert site.paths() == ["/", "/a/", "/b/", *sorted(["/c/", "/tag/x/"], key=site.paths().index)]
    assert crawled.figures["dropped/site_rule"] == 2
    assert crawled.figures["links/site_rule/wordpress.feed"] == crawled.figures["sites/recognised"] == 1
    assert crawled.figures["dropped/denied"] == 1
    lines = [json.loads(line) for line in (crawled.output / "failures.jsonl").read_text().splitlines()]
    assert {line["rule"] for line in lines if line["reason"] == "site_rule"} == {
        "SITE_RULES wordpress.feed",
        "SITE_RULES wordpress.reply",
    }

"""The rules of SCOPE_* settings and block lists: which URLs they leave alone, and that a crawl heeds them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from crawl_helpers import Web, crawl, crawl_log, error_of, scrapy
from driven_crawl import Driven
from graph_corpus import GraphCorpus

from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.crawl.scope import Scope
from crawl4llm.frontier import Entry
from crawl4llm.frontier.memory import MemoryVisited
from crawl4llm.options import Options
from crawl4llm.parts import open_parts
from crawl4llm.parts.scope import FILE_TYPES
from crawl4llm.parts.scope.work import UrlRules
from crawl4llm.policies import Candidate, CrawledPage


def rules(**settings: object) -> UrlRules:
    return UrlRules(Options(**settings))


def scope_of(**settings: object) -> Scope:
    return Scope(MemoryVisited(), parts=open_parts(Options(**settings)).begun(Counter()))


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://a.example/report.pdf", "file_type"),
        ("https://a.example/REPORT.PDF?page=2", "file_type"),
        ("https://a.example/map.png", "file_type"),
        ("https://a.example/a.tar.zst", "file_type"),
        ("https://a.example/wiki/File:map.png", None),
        ("https://a.example/wiki/File%3Amap.png", None),
        ("https://a.example/map.png/", None),
        ("https://a.example/map.png.html", None),
        ("https://a.example/show?file=map.png", None),
        ("https://a.example/png", None),
        ("https://a.example/v1.7", None),
        ("https://node.js/", None),
        ("https://a.zip/", None),
    ],
)
def test_file_types(url: str, rule: str | None) -> None:
    assert rules(scope_skipped_types=("images", "documents", ".zst", ".zip")).off_scope(url) == rule


def test_kinds_of_files_have_no_ending_twice() -> None:
    endings = Counter(" ".join(FILE_TYPES.values()).split())
    assert set(endings.values()) == {1}


def test_https_only() -> None:
    asked = ("https://a.example/", "http://a.example/", "http://https.example/")
    assert list(map(rules(scope_https_only=True).off_scope, asked)) == [None, "scheme", "scheme"]


def test_domains_and_suffixes(tmp_path: Path) -> None:
    path = tmp_path / "domains"
    path.write_text("co.uk\nno domain\nwww.one.example\n")
    some = rules(scope_domains=("edu", "xn--mnchen-3ya.de", str(path)))
    inside = ("http://www.mit.edu/", "https://münchen.de/", "http://a.b.co.uk:8080/x", "http://www.one.example/")
    outside = ("http://edu.example/", "http://one.example/", "http://uk/", "http://co.uk.example/", "http://[::1]/")
    assert [some.off_scope(url) for url in (*inside, *outside)] == [None] * 4 + ["domain"] * 5
    assert some.faults == [f"SCOPE_DOMAINS {path}: left out line 2 ('no domain' is not one domain)"]


def test_each_refusal_can_be_explained(tmp_path: Path) -> None:
    path = tmp_path / "spam.txt"
    path.write_text("\nspam.example\n")
    scope = scope_of(
        blocklists=(str(path),), scope_https_only=True, scope_skipped_types=("images",), scope_domains=("example",)
    )
    source = Entry("https://a.example/", "https://a.example/", 0.5, 0, None)
    given = (
        "https://www.spam.example/",
        "http://a.example/",
        "https://a.example/b.GIF",
        "https://b.org/",
        "https://b.example/",
    )
    found = [refusal and refusal.why for refusal in (scope.refusal(source, url) for url in given)]
    assert [one and one.rule for one in found] == [
        f"BLOCKLISTS spam.txt, line 2 (sha256:{digest_of(path)})",
        "SCOPE_HTTPS_ONLY",
        "SCOPE_SKIPPED_TYPES .gif",
        "SCOPE_DOMAINS",
        None,
    ]


class UrlGraph(GraphCorpus):
    """A graph whose documents have the URLs that are given."""

    def __init__(self, urls: dict[str, str], links: dict[str, list[str | None]]) -> None:
        super().__init__(links)
        self.urls = urls

    def page(self, key: str) -> PageRecord:
        return replace(super().page(key), url=self.urls[key])

    def _outlinks(self, key: str) -> list[Link]:
        return [link._replace(url=self.urls.get(str(link.key), link.url)) for link in super()._outlinks(key)]


def test_a_crawl_counts_links_and_documents_that_it_leaves_alone(tmp_path: Path) -> None:
    """Links are counted by rule and may be counted again; documents of listed domains end once; seeds too."""
    (tmp_path / "list").write_text("spam.example\n")
    urls = {
        "a": "https://good.example/a",
        "b": "http://good.example/b",
        "c": "https://good.example/c.png",
        "d": "https://spam.example/d",
        "e": "https://else.org/e",
        "f": "https://www.good.example/f",
        "g": "https://www.spam.example/g",
        "h": "https://good.example/h.gif",
    }
    links: dict[str, list[str | None]] = {"a": ["b", "c", "d", "e", "f", None], "f": ["b", "d", "a"], "g": [], "h": []}
    driven = Driven(
        UrlGraph(urls, links),
        tmp_path,
        url_policy="breadth_first",
        blocklists=(str(tmp_path / "list"),),
        scope_https_only=True,
        scope_skipped_types=("images",),
        scope_domains=("good.example", "spam.example"),
    )
    crawl = driven.crawl
    crawl._url_of_seed = urls.__getitem__
    driven.run("a", "g", "h")
    assert driven.ids == ["a", "f"]
    assert [(line["id"], line["outcome"], line["reason"]) for line in driven.failures] == [
        ("g", "dropped", "blocklist"),
        ("h", "dropped", "off_scope"),
        ("d", "dropped", "blocklist"),
    ]
    by_list = f"BLOCKLISTS list, line 1 (sha256:{digest_of(tmp_path / 'list')})"
    assert [line["rule"] for line in driven.failures] == [by_list, "SCOPE_SKIPPED_TYPES .gif", by_list]
    names = ("links/scheme", "links/file_type", "links/domain", "links/new", "links/seen", "links/without_key")
    assert [driven.figures.get(name) for name in names] == [2, 1, 1, 2, 9, 1]
    assert (driven.figures["dropped/blocklist"], driven.figures["dropped/off_scope"]) == (2, 1)
    assert crawl.balance.problem is None
    assert crawl.balance.discovered == 5
    driven.close()


def test_a_simulation_heeds_them_and_says_which_lists_held(small_demo_web: Web, tmp_path: Path) -> None:
    """The same settings give the same bytes; a crawl with another list is another crawl."""
    path = tmp_path / "list.txt"

    def crawled(name: str, **settings: object) -> Path:
        output = tmp_path / name
        result = crawl(small_demo_web, output, CRAWL_MAX_PAGES=60, CRAWL_SEEDS=20, **settings)
        assert result.returncode == 0, result.stderr
        return output

    hosts = Counter(line["url"].split("/")[2] for line in crawl_log(crawled("free")))
    (worst, _), *_ = hosts.most_common(1)
    path.write_text(f"{worst}\nbroken line\n")
    runs = [crawled(name, BLOCKLISTS=path) for name in ("one", "two")]
    assert not any(worst in line["url"] for line in crawl_log(runs[0]))
    assert (runs[0] / "crawl.jsonl").read_bytes() == (runs[1] / "crawl.jsonl").read_bytes()
    facts = [json.loads((run / "settings.json").read_text()) for run in (*runs, tmp_path / "free")]
    assert facts[0]["crawl_id"] == facts[1]["crawl_id"] != facts[2]["crawl_id"]
    assert [path.name for path in (runs[0] / "blocklists").iterdir()] == facts[0]["blocklists"]
    assert not {"url_rules", "blocklists"} & facts[2].keys()
    stats = json.loads((runs[0] / "stats.json").read_text())
    assert stats["crawl4llm/dropped/blocklist"] > 0


@pytest.mark.parametrize("setting", ["BLOCKLISTS", "SCOPE_DOMAINS"])
def test_a_list_that_cannot_be_read_starts_no_crawl(tmp_path: Path, setting: str) -> None:
    options = (f"{setting}={tmp_path}/none", f"OUTPUT_DIR={tmp_path}/run", "CORPUS=demo")
    result = scrapy("crawl", "influence", *(part for one in options for part in ("-s", one)))
    assert result.returncode == 1
    assert error_of(result) == f"{setting} {tmp_path}/none cannot be read: No such file or directory"
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError):
        open_parts(Options(**{setting.lower(): (f"{tmp_path}/none",)}))


def test_denied_links_and_redirects_are_dropped_and_seeds_are_not() -> None:
    scope = scope_of(scope_deny=("[?&]sort=", "/tag/"), scope_allow=("/tag/good/$",))
    page = Entry("http://a.test/", "http://a.test/", 0.5, 0, None)
    links = ["http://a.test/b", "http://a.test/b?sort=x", "http://a.test/tag/bad/", "http://a.test/tag/good/"]
    counts: Counter[str] = Counter()
    crawled = CrawledPage(page, 0.5, [Link(url, url, "", boilerplate=False) for url in links])
    new, dropped = scope.new_documents(crawled, counts)
    assert [candidate.key for candidate in new] == [links[0], links[3]]
    assert [(line["reason"], line.get("rule")) for line in dropped] == [
        ("denied", "SCOPE_DENY [?&]sort="),
        ("denied", "SCOPE_DENY /tag/"),
    ]
    assert counts["dropped/denied"] == 2
    seeds, refused = scope.wanted_seeds([Candidate("http://a.test/tag/seed/", "", 0, None)], counts)
    assert (len(seeds), refused) == (1, [])
    refusal = scope.refusal(page, "http://a.test/tag/other/")
    assert refusal is not None
    assert (refusal.reason, refusal.why and refusal.why.rule) == ("denied", "SCOPE_DENY /tag/")
    seed = Entry("http://a.test/tag/seed/", "", 0.5, 0, None)
    assert scope.refusal(seed, "http://a.test/tag/seed/2") is None, "a seed may lie there"


def test_a_crawl_heeds_expressions(tmp_path: Path) -> None:
    web = GraphCorpus({"http://a.test/": ["http://a.test/b", "http://a.test/tag/c"], "http://a.test/b": []})
    driven = Driven(web, tmp_path, url_policy="breadth_first", scope_deny=("/tag/",))
    driven.run("http://a.test/")
    driven.close()
    assert [line["id"] for line in crawl_log(tmp_path)] == ["http://a.test/", "http://a.test/b"]
    [line] = map(json.loads, (tmp_path / "failures.jsonl").read_text().splitlines())
    assert (line["reason"], line["rule"]) == ("denied", "SCOPE_DENY /tag/")


def test_an_expression_that_does_not_compile_ends_a_crawl_with_one_line(tmp_path: Path) -> None:
    result = scrapy("crawl", "influence", "-s", f"OUTPUT_DIR={tmp_path / 'out'}", "-s", "SCOPE_DENY=ab(")
    assert result.returncode != 0
    assert "SCOPE_DENY: 'ab(' is no expression of RE2: missing ): ab(" in error_of(result)

"""The web of real software: what its parts make of URLs, logs and texts, and a small one that is built and crawled."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from benchmarks.websoftware import __main__ as command_line, composition, planning
from benchmarks.websoftware.access_logs import marks, since
from benchmarks.websoftware.peers import taken_by_nutch
from benchmarks.websoftware.planning import plan, software
from benchmarks.websoftware.reporting import result
from benchmarks.websoftware.site import Site
from benchmarks.websoftware.texts import Block, Text
from crawl4llm.base.errors import InputError


def site(name: str) -> Site:
    return next(one for one in composition.SITES if one.name == name)


def texts(number: int) -> list[Text]:
    blocks = [Block("p", "Some words of a text that is long enough.")]
    return [Text(f"{n:012}", f"Title {n % 3}", "example.org", 0.9 if n % 2 else 0.1, blocks) for n in range(number)]


@pytest.mark.parametrize(
    ("name", "target", "path", "kind"),
    [
        ("lexicon", "/index.php/Some_page", "/index.php/Some_page", "page"),
        ("lexicon", "/index.php?title=Some_page&oldid=7", "/index.php/Some_page", "oldid"),
        ("lexicon", "/index.php?title=Some_page&action=edit&section=1", None, "action=edit"),
        ("lexicon", "/index.php/Special:AllPages", None, "special page"),
        ("handbook", "/wiki/Some_page", "/wiki/Some_page", "page"),
        ("notes", "/doku.php?id=boost:page", "/doku.php?id=boost:page", "page"),
        ("notes", "/doku.php?id=boost:page&do=edit", None, "do=edit"),
        ("notes", "/doku.php?id=boost:page&do=export_xhtml", "/doku.php?id=boost:page", "do=export_xhtml"),
        ("mapledocs", "/boost/page?rev=1", "/boost/page", "rev="),
        ("mapledocs", "/_export/xhtml/boost/page", "/boost/page", "export"),
        ("kb", "/doku.php?id=boost:page&DokuWiki=abc", "/doku.php?id=boost:page", "session id"),
        ("greenvalley", "/2012/01/a-page/", "/2012/01/a-page/", "page"),
        ("greenvalley", "/2012/01/a-page/?replytocom=5", "/2012/01/a-page/", "replytocom"),
        ("greenvalley", "/2012/01/", None, "calendar and dates"),
        ("greenvalley", "/tag/words/", None, "tag"),
        ("letters", "/?p=101", "/?p=101", "page"),
        ("letters", "/?p=101&replytocom=3", "/?p=101", "replytocom"),
        ("letters", "/?cat=2", None, "category"),
        ("journal", "/archives/101", "/archives/101", "page"),
        ("journal", "/archives/tag/numpy", None, "tag"),
        ("forum", "/topic/12/a-title/?page=2", "/topic/12/", "page="),
        ("forum", "/user/login/?next=/", None, "login"),
        ("board", "/forum/boost-1/topic/a-title-18/?post=43", "/forum/boost-1/topic/a-title-18/", "post="),
        ("shop", "/catalogue/a-title_1/", "/catalogue/a-title_1/", "page"),
        ("shop", "/catalogue/category/shelf-b_1/?sort_by=rating", None, "category, sort_by="),
        ("project", "/ticket/3", "/ticket/3", "page"),
        ("project", "/wiki/WikiStart?action=diff&version=2", None, "action=diff"),
        ("bugs", "/issue3", "/issue3", "page"),
        ("bugs", "/msg4", "/issue3", "message page"),
        ("bugs", "/msg587", "/issue236", "message page"),
        ("bugs", "/msg3", None, "message page"),
        ("bugs", "/msg4/text", None, "raw"),
        ("git", "/?p=b.git;a=blob;f=docs/a.txt;hb=HEAD", "/?p=b.git;a=blob;f=docs/a.txt;hb=HEAD", "page"),
        ("git", "/?p=b.git;a=blob;f=docs/a.txt;h=12ab", "/?p=b.git;a=blob;f=docs/a.txt;hb=HEAD", "a=blob of a commit"),
        ("git", "/?p=b.git;a=commitdiff;h=12ab", None, "a=commitdiff"),
        ("code", "/b/tree/docs/a.txt?id=12ab", "/b/tree/docs/a.txt", "tree of a commit"),
        ("code", "/b/log/", None, "log"),
        ("lists", "/discuss/msg00003.html", "/discuss/msg00003.html", "page"),
        ("inbox", "/discuss/12ab@example.org/T/", "/discuss/12ab@example.org/", "thread"),
        ("manual", "/en/boost/a.html", "/en/boost/a.html", "page"),
        ("manual", "/de/boost/a.html", None, "translation"),
        ("guide", "/de/boost/a/", "/boost/a/", "translation"),
        ("harbour", "/de/posts/a/", "/posts/a/", "translation"),
        ("oak", "/posts/a/", "/posts/a/", "page"),
        ("garden", "/archives/2026/10/", None, "calendar and dates"),
        ("app", "/boost/a", None, "shell"),
    ],
)
def test_a_target_is_told_by_its_software(name: str, target: str, path: str | None, kind: str) -> None:
    assert software(site(name)).read(site(name), target) == (path, kind)


@pytest.mark.parametrize("one", composition.SITES, ids=lambda one: one.name)
def test_a_place_is_recognised_as_what_it_is(one: Site) -> None:
    if not one.good:
        pytest.skip("its texts are behind a login, or in no page")
    for path in software(one).paths(one, texts(12)):
        assert software(one).read(one, path) == (path, "page")


def test_each_text_has_one_place() -> None:
    sites = [site("oak"), site("bugs")]
    wanted = sum(one.good + one.low for one in sites)
    planned = plan(sites, texts(2 * wanted))
    used = Counter(fill.text.id for fills in planned.fills.values() for fill in fills)
    assert len(used) == wanted
    assert set(used.values()) == {1}
    assert planned.digest == plan(sites, texts(2 * wanted)).digest
    assert planned.digest != plan(sites, texts(2 * wanted + 1)[1:]).digest
    with pytest.raises(InputError, match=r"the web needs .* good texts, there are"):
        plan(sites, texts(20))


def test_names_that_software_has_taken_are_not_given() -> None:
    assert planning.titles([text._replace(title="Index") for text in texts(2)]) == ["Index 2", "Index 3"]


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("https://a.test/page", True),
        ("https://a.test/?p=1", False),
        ("https://a.test/page.css", False),
        ("https://a.test/a/b/a/c/a/d", False),
        ("mailto:a", False),
    ],
)
def test_nutchs_filter(url: str, taken: bool) -> None:
    assert taken_by_nutch(url) == taken


def test_logs_of_all_servers_become_requests(tmp_path: Path) -> None:
    fields = ["2/000", "443", "a.test", "GET /b HTTP/1.1", "200", "10", "text/html", "us"]
    before = marks(tmp_path)
    (tmp_path / "nginx.log").write_text("\t".join(fields) + "\nan error\n")
    request = {"host": "b.test", "uri": "/c", "headers": {"User-Agent": ["us, too"]}, "tls": {}}
    answer = {"ts": 1.5, "status": 404, "size": 0, "resp_headers": {"Content-Type": ["text/html"]}, "request": request}
    others = [{"msg": "no request"}, {**answer, "request": {**request, "uri": "/robots.txt"}}]
    others.append({**answer, "request": {**request, "headers": {}}})
    (tmp_path / "caddy.json").write_text("".join(json.dumps(line) + "\n" for line in [answer, *others]))
    found = since(tmp_path, before, "us")
    assert [(one.scheme, one.host, one.target, one.status, one.is_page) for one in found] == [
        ("https", "b.test", "/c", 404, False),
        ("https", "a.test", "/b", 200, True),
    ]
    assert since(tmp_path, marks(tmp_path), "us") == []


def test_means_are_of_sets_of_seeds_that_all_crawlers_have_crawled_from() -> None:
    shares = {"link": [0.6], "parent_first": [0.3], "breadth_first": [0.5, 0.9], "nutch_filter": [0.4, 0.8]}
    records = [
        {
            "of": "hugo",
            "crawler": crawler,
            "seed": seed,
            "requests": 300,
            "verdicts": {"all": {"useful": round(300 * share), "requests": 310 * share}},
        }
        for crawler, found in shares.items()
        for seed, share in enumerate(found)
    ]
    told = result(records, "composition", ("ours", "theirs"), None)
    assert told.tables[0].rows == [["hugo", 0.6, 0.3, 0.5, 0.4, 1.0]]
    assert [figure.value for figure in told.figures] == pytest.approx([1.2, 0.6])


@pytest.fixture
def websoftware(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """The benchmark's command line with a small web, which returns its status. Texts are taken from pages once."""
    monkeypatch.setattr(command_line, "first_texts", cache(command_line.first_texts))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(*args: str) -> int:
        monkeypatch.setattr(sys, "argv", ["websoftware", "--small", f"--state={tmp_path}", f"--out={tmp_path}", *args])
        return command_line.main()

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.slow
def test_a_small_web_is_built_and_crawled(
    websoftware: Callable[..., int],
    tmp_path: Path,
    shared: Callable[[str], Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By a crawler of each kind: the other two differ in a policy, and in having no filter."""
    shared("corpora")
    assert websoftware("--crawlers=link,nutch_filter", "--requests=20", "--delay=0.02") == 0
    said = capsys.readouterr().out
    if said.startswith("skipped: "):
        pytest.skip(said.strip())
    told = json.loads((tmp_path / "websoftware.json").read_text())
    rows = {row[0]: row for row in told["tables"][0]["rows"]}
    assert list(rows) == ["link", "nutch_filter"]
    assert {name: row[1] for name, row in rows.items()} == dict.fromkeys(rows, 20)
    assert all(2 <= row[2] < 20 for row in rows.values()), rows
    for file in (tmp_path / "small/measured").glob("*.jsonl"):
        if "-scrapy-" not in file.name:
            file.unlink()  # as later code of crawl4llm finds them
    assert websoftware("--report") == 0
    told = json.loads((tmp_path / "websoftware.json").read_text())
    assert told["tables"][0]["rows"] == [rows["nutch_filter"]]
    told["notes"] = ["composition: of another web"]
    (tmp_path / "before.json").write_text(json.dumps(told))
    assert websoftware("--report", f"--before={tmp_path / 'before.json'}") == 1
    assert "are of another composition" in capsys.readouterr().err

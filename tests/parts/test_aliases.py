"""Patterns of URLs that bring pages a second time, or nothing: what is learnt of them, what ends it, and its bounds."""

from __future__ import annotations

import random
import string
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from crawl4llm.base.errors import InputError
from crawl4llm.base.page_heads import PageHead
from crawl4llm.base.pages import Link
from crawl4llm.crawl.pieces import StoredPieces
from crawl4llm.frontier import Entry
from crawl4llm.frontier.store import Store
from crawl4llm.options import Options
from crawl4llm.parts import Rated, Refusal
from crawl4llm.parts.aliases import evidence, pages
from crawl4llm.parts.aliases.patterns import holds, removals, split_url, without
from crawl4llm.parts.aliases.tables import Table, hashed
from crawl4llm.parts.aliases.work import Aliases
from crawl4llm.policies import Candidate, CrawledPage
from crawl4llm.scoring.signatures import signature_of

SITE = "http://site.example"
WORDS = [f"word{number}" for number in range(2000)]


def prose(number: int) -> str:
    return " ".join(random.Random(number).choices(WORDS, k=200))


class Site:
    """A part that is told of pages, as a crawl tells it."""

    def __init__(self, pairs: int = 5, worthless: int = 20, pieces: StoredPieces | None = None) -> None:
        self.part = Aliases(Options(url_alias_pairs=pairs, url_worthless_pages=worthless))
        self.part.counts = Counter()
        self.part.begin()
        if pieces is not None:
            self.part.keep_in(pieces)

    def crawl(
        self,
        path: str,
        text: str | None,
        *,
        canonical: str = "",
        noindex: bool = False,
        follows: bool = True,
        novel: bool | None = True,
        site: str = SITE,
    ) -> Rated:
        key = path if "://" in path else f"{site}{path}"
        canonical = canonical if "://" in canonical or not canonical else f"{site}{canonical}"
        page = Rated(
            0.5 if text else 0.0,
            signature=signature_of(text or ""),
            novel=novel if text else None,
            key=key,
            url=key,
            noindex=noindex,
            follows=follows,
            head=PageHead(canonical),
        )
        self.part.rated(0, page)
        return page

    def found(self, path: str, *links: str) -> None:
        """Documents that are new, and first found on a page."""
        url = f"{SITE}{path}"
        new = [Candidate(f"{SITE}{link}", f"{SITE}{link}", 2, url) for link in links]
        self.part.found(CrawledPage(Entry(url, url, 0.5, 1, SITE), 0.5, ()), new)

    def refusal(self, path: str) -> Refusal | None:
        """Why a link is dropped, whether or not it is one of those by which a pattern is tested."""
        for number in range(100):
            url = f"{SITE}{path.replace('@', str(number))}"
            if hashed(url) % 20:
                return self.part.admits(Candidate(url, url, 1, SITE))
        raise AssertionError

    def follows(self, path: str) -> bool:
        return self.refusal(path) is None

    def replies(self, numbers: Sequence[int], answers: int = 1) -> None:
        """Posts with answers, each of which names its post as canonical."""
        for number in numbers:
            self.crawl(f"/post{number}/", prose(number), canonical=f"/post{number}/")
            for answer in range(answers):
                reply = f"/post{number}/?replytocom={10 * number + answer}"
                self.crawl(reply, prose(number), canonical=f"/post{number}/", novel=False)


# -- patterns -----------------------------------------------------------------------------------------------------


def found(url: str) -> dict[str, str]:
    """Patterns of a URL with the URL without them."""
    split = split_url(url)
    assert split is not None
    return {name: one.form for one in removals(split) for name in (one.by_name, one.by_value) if name}


@pytest.mark.parametrize(
    ("url", "pattern", "without"),
    [
        ("http://blog.test/2020/05/post/?replytocom=12", "?replytocom", "http://blog.test/2020/05/post"),
        ("https://wiki.test/index.php?title=X&action=edit", "?action=edit", "http://wiki.test/index.php?title=X"),
        ("http://wiki.test/index.php?action=history&title=X", "?action", "http://wiki.test/index.php?title=X"),
        ("http://wiki.test/w?title=X&action=edit&section=2", "?action&section", "http://wiki.test/w?title=X"),
        ("http://wiki.test/w?title=X&oldid=17&diff=prev", "?diff=prev&oldid=17", "http://wiki.test/w?title=X"),
        ("http://wiki.test/doku.php?id=a:b&do=edit", "?do=edit", "http://wiki.test/doku.php?id=a:b"),
        ("http://files.test/pub/?C=N;O=D", "?C&O", "http://files.test/pub/"),
        ("http://git.test/?p=a.git;a=log;h=1b2c", "?h", "http://git.test/?p=a.git;a=log"),
        ("http://forum.test/topic/5/?post=77", "?post", "http://forum.test/topic/5/"),
        ("http://shop.test/a?PHPSESSID=0123456789abcdef", "?PHPSESSID", "http://shop.test/a"),
        ("http://site.test/a?print", "?print=", "http://site.test/a"),
        ("http://www.site.test/a?print", "?print=", "https://site.test/a/"),
        ("http://site.test/a/print/b", "/print/", "http://site.test/a/b"),
        ("http://site.test/b/feed/", "/feed/", "http://site.test/b"),
        ("http://site.test/b/comment-page-2/?x=1", "/comment-page-#/", "http://site.test/b?x=1"),
    ],
)
def test_a_url_is_another_one_with_a_pattern(url: str, pattern: str, without: str) -> None:
    split, other = split_url(url), split_url(without)
    assert split is not None
    assert other is not None
    assert found(url)[pattern] == other.form
    assert holds(pattern, split.words)
    assert not holds(pattern, other.words)


def test_what_tells_pages_apart_is_no_pattern() -> None:
    assert "/#/" not in found("http://site.test/2020/05/a"), "numbers"
    assert not found("http://site.test/about"), "the only segment: what is left is the front page"
    assert "?q=two words" not in found("http://site.test/?q=two words")
    assert split_url("ftp://site.test/a") is None
    assert split_url("clueweb22-en0000-00-00000") is None


def test_all_that_holds_of_a_url_can_be_left_out_of_it() -> None:
    """And the URL without it is shorter, and another."""
    draw = random.Random(3)
    for _ in range(2000):
        path = "/".join(draw.choices(["a", "print", "b2", "17", ""], k=draw.randrange(5)))
        pairs = [f"{draw.choice('abcd')}={draw.choice(['1', 'x', '%41', ''])}" for _ in range(draw.randrange(5))]
        query = draw.choice("&;").join(pairs)
        url = f"http://site.test/{path}" + (f"?{query}" if query else "")
        split = split_url(url)
        assert split is not None
        seen = list(removals(split))
        assert len(seen) <= 8 + 15
        for one in seen:
            assert len(one.form) < len(split.form)
            assert holds(one.by_name, split.words)
            assert not one.by_value or holds(one.by_value, split.words)


def test_no_hostile_url_takes_for_ever() -> None:
    began = time.process_time()
    for part in ("/a", "/" + "a" * 39, "&a=1", ";", "&" + "n" * 40 + "=", "%2F", "/\ud800"):
        for length in (1999, 200_000):
            url = f"http://site.test/x?{part * length}"[:length]
            for one in (url, url.replace("?", "/")):
                split = split_url(one)
                if split is not None:
                    assert len(list(removals(split))) <= 8 + 22
                    assert isinstance(split.words, frozenset)
    assert time.process_time() - began < 20


# -- what is learnt -----------------------------------------------------------------------------------------------


def test_five_aliases_are_enough_and_four_are_not() -> None:
    site = Site()
    site.replies(range(4))
    assert site.follows("/other/?replytocom=9@")
    site.replies([4])
    refusal = site.refusal("/other/?replytocom=9@")
    assert refusal is not None
    assert refusal.reason == "alias"
    assert refusal.counted == "links/alias/canonical"
    assert refusal.why is not None
    assert refusal.why.rule == "URL_ALIAS_PAIRS ?replytocom of site.example"
    assert site.follows("/other/?reply=9@")
    assert site.follows("/post5/")
    assert site.part.counts == {"pages/aliases": 5, "aliases/learnt": 1, "aliases/ended": 0}
    seed = Entry(f"{SITE}/post9/?replytocom=1", "", 1.0, 0, None)
    assert site.part.drops(seed) is None, "who gives a seed wants it"


def test_links_to_aliases_lead_to_their_pages() -> None:
    """No other link may lead there. Those to the page that they are on, and to test the pattern, are apart."""
    site = Site()
    site.replies(range(9))
    page = site.crawl("/post1/", prose(1))
    other = "http://other.example/post/?replytocom=7"
    urls = [f"{SITE}/new{number}/?a=1&replytocom={number}" for number in range(400)]
    given = [Link(url, url, "reply", False) for url in [*urls, other, f"{SITE}/post1/?replytocom=12"]]
    found = [link.key for link in site.part.leads(page, given)]
    tests = [url for url in urls if not hashed(url) % 20]
    assert 5 <= len(tests) <= 40
    assert set(tests) <= set(found)
    assert set(found) - set(tests) == {f"{SITE}/new{n}/?a=1" for n in range(400) if urls[n] not in tests} | {other}
    assert site.part.counts["links/alias/followed"] == 400 - len(tests)
    wiki(site, range(20))
    form = Link(f"{SITE}/w?title=New&action=edit", f"{SITE}/w?title=New&action=edit", "", False)
    assert site.part.leads(page, [form]) == [form], "the page without it may not be there"


@pytest.mark.parametrize(
    ("url", "patterns", "expected"),
    [
        (f"{SITE}/a/?r=1", ["?r"], f"{SITE}/a/"),
        (f"{SITE}/a?x=1;r=2&y=3", ["?r"], f"{SITE}/a?x=1&y=3"),
        (f"{SITE}/a?do=edit&do2=edit", ["?do=edit"], f"{SITE}/a?do2=edit"),
        (f"{SITE}/a?C=N;O=D", ["?C&O"], f"{SITE}/a"),
        (f"{SITE}/a/print/b/", ["/print/"], f"{SITE}/a/b/"),
        (f"{SITE}/a/comment-page-12/?x=1", ["/comment-page-#/", "?x"], f"{SITE}/a/"),
        (f"{SITE}/print", ["/print/"], f"{SITE}/"),
        (f"{SITE}/a?r=1", ["?s", "/b/"], f"{SITE}/a?r=1"),
    ],
)
def test_a_url_without_patterns(url: str, patterns: list[str], expected: str) -> None:
    assert without(url, patterns) == expected


def test_another_owner_is_another_site() -> None:
    site = Site()
    site.replies(range(9))
    url = "http://other.example/post/?replytocom=77"
    assert site.part.admits(Candidate(url, url, 1, SITE)) is None


def test_one_in_twenty_is_fetched_all_the_same() -> None:
    site = Site()
    site.replies(range(9))
    urls = [f"{SITE}/p{number}/?replytocom={number}" for number in range(4000)]
    fetched = [url for url in urls if site.part.admits(Candidate(url, url, 1, SITE)) is None]
    assert 140 <= len(fetched) <= 260
    again = [url for url in urls if site.part.drops(Entry(url, url, 0.5, 2, SITE)) is None]
    assert fetched == again, "the same ones when their turn comes"


def test_one_counterexample_ends_it_for_good() -> None:
    site = Site()
    site.replies(range(9))
    assert not site.follows("/p/?replytocom=5@")
    site.crawl("/post3/?replytocom=555", prose(777), canonical="/post3/")
    assert site.follows("/p/?replytocom=5@")
    site.replies(range(20, 60))
    assert site.follows("/p/?replytocom=5@")
    assert site.part.counts["aliases/ended"] == 1
    before = Site()
    before.crawl("/post3/", prose(3))
    before.crawl("/post3/?replytocom=555", prose(777), canonical="/post3/")
    before.replies(range(10, 60))
    assert before.follows("/p/?replytocom=5@"), "it came before"


@pytest.mark.parametrize("first", ["page", "alias"])
def test_the_order_of_page_and_alias_makes_no_difference(first: str) -> None:
    site = Site()
    for number in range(5):
        told = [(f"/post{number}/", ""), (f"/post{number}/?replytocom={number}", f"/post{number}/")]
        for place, (path, canonical) in enumerate(told if first == "page" else reversed(told)):
            assert site.follows("/p/?replytocom=5@")
            site.crawl(path, prose(number), canonical=canonical, novel=not place)
    assert not site.follows("/p/?replytocom=5@")
    assert site.part.counts["pages/aliases"] == 5


def test_each_alias_that_waits_is_counted() -> None:
    site = Site()
    for reply in range(5):
        site.crawl(f"/post/?replytocom={reply}", prose(1), canonical="/post/", novel=not reply)
    site.crawl("/post/", prose(1), novel=False)
    assert site.part.counts["pages/aliases"] == 5
    assert not site.follows("/other/?replytocom=@")


def test_a_canonical_that_is_none_is_believed_by_nobody() -> None:
    """Not fetched, of another owner, one for a whole site, in a loop, itself an alias, or of another text."""
    not_fetched, elsewhere, one, loop, chain, text = (Site(worthless=0) for _ in range(6))
    for number in range(40):
        not_fetched.crawl(f"/a{number}?x={number}", prose(number), canonical=f"/a{number}")
        elsewhere.crawl(f"/a{number}", prose(number))
        elsewhere.crawl(f"/a{number}?x={number}", prose(number), canonical=f"http://mirror.example/a{number}")
        one.crawl(f"/a{number}", prose(number), canonical="/")
        one.crawl(f"/a{number}?x={number}", prose(number), canonical="/")
        loop.crawl(f"/a{number}", prose(number), canonical=f"/a{number}?x={number}")
        loop.crawl(f"/a{number}?x={number}", prose(number), canonical=f"/a{number}")
        chain.crawl(f"/a{number}", prose(number), canonical=f"/b{number}")
        chain.crawl(f"/a{number}?x={number}", prose(number), canonical=f"/a{number}")
        text.crawl(f"/a{number}", prose(number))
        text.crawl(f"/a{number}?x={number}", prose(1000 + number), canonical=f"/a{number}")
    for site in (not_fetched, elsewhere, one, loop, chain, text):
        assert site.follows("/c?x=9@")
        assert site.part.counts["pages/aliases"] == 0


def wiki(site: Site, numbers: Sequence[int], asks: str = "action=edit", **more: Any) -> None:
    """Pages of a wiki, each with a second one that is not to be indexed."""
    for number in numbers:
        site.crawl(f"/w?title=T{number}", prose(number))
        site.crawl(f"/w?title=T{number}&{asks}", f"form {prose(5000 + number)}", noindex=True, **more)


def test_twenty_worthless_pages_over_five_are_enough() -> None:
    site = Site()
    wiki(site, range(19))
    assert site.follows("/w?title=New@&action=edit")
    wiki(site, [19])
    refusal = site.refusal("/w?title=New@&action=edit")
    assert refusal is not None
    assert refusal.counted == "links/alias/worthless"
    assert refusal.why is not None
    assert refusal.why.rule == "URL_WORTHLESS_PAGES ?action=edit of site.example"
    assert not site.follows("/w?title=New@&action=edit&section=2"), "with more besides"
    assert site.follows("/w?title=New@&action=raw"), "another value"
    assert site.follows("/w?title=New@")
    few = Site()
    for number in range(60):
        few.crawl(f"/w?title=T{number % 4}", prose(number % 4))
        few.crawl(f"/w?title=T{number % 4}&sid={number}", prose(number % 4), novel=False)
    assert few.follows("/w?title=New@&sid=5"), "of four pages alone"


def test_a_name_alone_is_learnt_of_several_values() -> None:
    site = Site()
    for place, asks in enumerate(["edit", "history", "info", "raw", "purge"]):
        wiki(site, range(20 * place, 20 * place + 8), f"action={asks}")
    assert not site.follows("/w?title=New@&action=delete")
    assert site.follows("/w?title=New@"), "each page has a title, and is worth something"


def test_a_pattern_of_which_pages_are_good_is_followed() -> None:
    site = Site()
    wiki(site, range(40))
    site.crawl("/w?title=T3&action=edit", prose(900))
    assert site.follows("/w?title=New@&action=edit")


def test_lists_that_are_not_to_be_indexed_are_followed_for_their_links() -> None:
    """The second page of a list leads to more, but the form of a page does not."""
    site = Site()
    for number in range(40):
        site.crawl(f"/list{number}", prose(number))
        site.crawl(f"/list{number}?page=2", prose(500 + number), noindex=True)
        site.found(f"/list{number}?page=2", f"/more{number}", f"/list{number}?page=3")
        site.crawl(f"/list{number}?do=edit", prose(900 + number), noindex=True)
        site.found(f"/list{number}?do=edit", *(["/help"] if number < 3 else [f"/list{number}?do=edit&x={number}"]))
        site.found(f"/list{number}", f"/other{number}")
    assert site.follows("/new@?page=2")
    assert not site.follows("/new@?do=edit")


def test_pages_without_their_counterpart() -> None:
    """A wiki with paths of its own: ``/wiki/X``, and ``/w?title=X&action=edit``."""
    site = Site()
    for number in range(20):
        site.crawl(f"/wiki/T{number}", prose(number))
        site.crawl(f"/w?title=T{number}&action=edit", "You may not edit.", noindex=True, follows=False, novel=False)
    assert not site.follows("/w?title=New@&action=edit")
    leads = Site()
    for number in range(60):
        leads.crawl(f"/list?tag=T{number}&sort=name", prose(number), noindex=True)
    assert leads.follows("/list?tag=New@&sort=name"), "their links may lead to good pages"
    sessions = Site()
    for number in range(5):
        sessions.crawl(f"/a{number}", prose(number))
        sessions.crawl(f"/a{number}?sid=11", prose(number), canonical=f"/a{number}", novel=False)
        for other in range(5):
            sessions.crawl(f"/b{number}-{other}?sid=11", prose(10 * number + other + 500))
    assert sessions.follows("/c@?sid=11"), "most of its pages are had with it alone"


def test_a_site_that_answers_the_same_to_everything_teaches_nothing() -> None:
    site = Site()
    for number in range(60):
        site.crawl(f"/a{number}/x", "the same", novel=not number)
        site.crawl(f"/a{number}/y/x", "the same", novel=False)
    assert site.follows("/b@/y/x")
    assert site.part.counts["aliases/learnt"] == 0


def test_path_segments_are_learnt() -> None:
    site = Site()
    for number in range(20):
        assert site.follows(f"/new@/print/{number}")
        site.crawl(f"/d{number}/a", prose(number))
        site.crawl(f"/d{number}/print/a", prose(number), novel=False)
    assert not site.follows("/new@/print/a")
    assert site.follows("/new@/a/printer")


def test_either_setting_alone() -> None:
    site, other = Site(worthless=0), Site(pairs=0)
    wiki(site, range(40))
    other.replies(range(4), answers=3)
    assert site.follows("/w?title=New@&action=edit")
    assert other.follows("/post/?replytocom=7@")
    other.replies(range(10, 20))
    refusal = other.refusal("/post/?replytocom=7@")
    assert refusal is not None
    assert refusal.counted == "links/alias/worthless"


def test_the_canonical_is_noted_and_nothing_else_changes() -> None:
    site = Site()
    page = site.crawl("/a?x=1", prose(1), canonical="/a")
    assert page.metadata == {"canonical": f"{SITE}/a"}
    assert page.key == f"{SITE}/a?x=1"
    assert site.crawl("/a", prose(1), canonical="/a").metadata == {}
    assert site.crawl("/b", prose(2)).metadata == {}


# -- bounds and state ---------------------------------------------------------------------------------------------


def random_pages(seed: int, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Pages of a few owners, with all that their heads may say."""
    draw = random.Random(seed)
    for _ in range(number):
        site = f"http://{draw.choice(['a', 'b', 'c'])}.example"
        base = draw.choice([f"/p{draw.randrange(12)}", f"/w?title=T{draw.randrange(12)}"])
        mark = "&" if "?" in base else "?"
        path = base + draw.choice(["", "", f"{mark}r={draw.randrange(30)}", f"{mark}do=edit", f"{mark}x=1;y=2"])
        text = prose(hash(site + base) % 1000) if draw.random() < 0.9 else None
        told = {
            "canonical": draw.choice(["", "", base, "/"]),
            "noindex": draw.random() < 0.2,
            "follows": draw.random() < 0.9,
            "novel": draw.random() < 0.5,
        }
        yield path, {"text": text, "site": site, **told}


def test_state_is_the_same_after_any_stop(tmp_path: Path) -> None:
    """Killed after each few pages, what was not committed is crawled again."""
    told = list(random_pages(1, 600))
    whole = Site(pairs=2, worthless=3)
    for path, page in told:
        whole.crawl(path, **page)
    draw, done = random.Random(2), 0
    counts: Counter[str] = Counter()
    while done < len(told):
        store = Store(tmp_path / "store", fsync=False)
        pieces = StoredPieces(store)
        site = Site(pairs=2, worthless=3, pieces=pieces)
        ahead = draw.randrange(1, 60)
        for path, page in told[done : done + ahead]:
            site.crawl(path, **page)
        pieces.save()
        store.commit()
        counts.update(site.part.counts)
        done += ahead
        for path, page in told[done : done + 5]:
            site.crawl(path, **page)  # in no commit
        store.close()
    store = Store(tmp_path / "store", fsync=False)
    site = Site(pairs=2, worthless=3, pieces=StoredPieces(store))
    owners = ["a.example", "b.example", "c.example"]
    rules = {owner: whole.part._patterns.rules_of(owner) for owner in owners}
    assert sum(map(len, rules.values())) > 3
    assert {owner: site.part._patterns.rules_of(owner) for owner in owners} == rules
    assert counts == whole.part.counts
    store.close()


def test_what_an_owner_can_fill_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, Any]] = []

    class Counted(Table):
        def __init__(self, kept: dict[str, Any], most: int, window: int) -> None:
            super().__init__(kept, most // 64, window // 64)
            rows.append(kept)

    monkeypatch.setattr(evidence, "Table", Counted)
    monkeypatch.setattr(pages, "Table", Counted)
    site = Site()
    draw = random.Random(5)
    for number in range(2000):
        names = ["".join(draw.choices(string.ascii_lowercase, k=5)) for _ in range(3)]
        query = "&".join(f"{name}={number}" for name in names)
        site.crawl(f"/{names[0]}/{names[1]}?{query}", prose(number), noindex=draw.random() < 0.5, follows=False)
    assert [len(kept) for kept in rows] == [4, 64, 16]
    assert len(site.part._patterns.rules_of("site.example")) <= 4


def test_a_rule_is_forgotten_with_its_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "WINDOW", 1)
    site = Site()
    site.replies(range(5), answers=5)
    assert set(site.part._patterns.rules_of("site.example")) <= {"?replytocom"}
    for number in range(2000):
        site.crawl(f"/q{number}?n{number}=1", prose(number), noindex=True, follows=False)
    assert site.part._patterns.rules_of("site.example") == {}


def read_all(site: Site) -> None:
    """Let it read each kind of what it has kept."""
    site.refusal("/x/?replytocom=@")
    site.crawl("/post1/?replytocom=1", prose(1), canonical="/post1/")
    site.crawl("/later/", prose(99))


def test_a_damaged_store_is_said(tmp_path: Path) -> None:
    for name in ("evidence", "rules", "pages", "awaited"):
        store = Store(tmp_path / name, fsync=False)
        pieces = StoredPieces(store)
        site = Site(pieces=pieces)
        site.replies(range(6))
        site.crawl("/later/?replytocom=3", prose(99), canonical="/later/")
        pieces.save()
        for key, _ in list(store.behind("state", f"policy/aliases/{name}/".encode())):
            store.put("state", key, b'["odd"]')
        again = Site(pieces=StoredPieces(store))
        with pytest.raises(InputError, match=f"aliases/{name}"):
            read_all(again)
        store.close()

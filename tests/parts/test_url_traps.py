"""Rules for URLs that lead into a trap: what each holds of, and what near it it does not."""

from __future__ import annotations

import time

import pytest
from crawl_helpers import PROJECT

from crawl4llm.parts.url_traps.rules import RULES, Traps

SESSION = "0123456789abcdef0123456789abcdef"
TRAPS = {
    "cgi_bin": ["http://a.test/cgi-bin/search.pl", "http://a.test/x/cgi-bin/", "http://a.test/cgi-bin/a?b=1"],
    "repeated_path": [
        "http://a.test/a/b/a/b/a/b/",
        "http://a.test/a/b/a/b/a/b",
        "http://a.test/x/a/a/a/y.html",
        "http://a.test/img/x/img/y/img/z/img/",
        "http://a.test/a/b/c/a/b/c/a/b/c/d.html?page=2",
    ],
    "calendar": [
        "http://a.test/calendar/2031/05/",
        "http://a.test/events/2031-05-01",
        "http://a.test/events/day/2031-05-01/?x=1",
        "http://a.test/kalender/2031/5",
        "http://a.test/?month=5&year=2031",
        "http://a.test/events/?tribe-bar-date=2031-05-01",
        "http://a.test/news?date=20310501",
        "http://a.test/e?ical=1",
    ],
    "session_id": [
        "http://a.test/page;jsessionid=A1B2C3D4E5F6",
        "http://a.test/?PHPSESSID=abcdef0123456789",
        f"http://a.test/forum?t=5&sid={SESSION}",
        f"http://a.test/forum?s={SESSION}&t=5",
        "http://a.test/(S(abcdefghij0123456789abcd))/page.aspx",
    ],
    "deep_path": [f"http://a.test/{'/'.join(map(str, range(17)))}"],
    "many_parameters": [
        "http://a.test/?a=1&b=2&c=3&d=4&e=5&f=6&g=7",
        "http://a.test/shop?colour=red&colour=blue&colour=green",
        "http://a.test/shop?f[]=1;f[]=2;f[]=3",
    ],
}
HONEST = [
    "http://a.test/",
    "http://a.test",
    "http://a.test/docs/cgi-binaries/",
    "http://a.test/boost/boost/numeric/",
    "http://square.test/okhttp/2.x/okhttp/com/squareup/okhttp/Call.html",
    "http://a.test/2019/05/01/a-day-in-may/",
    "http://a.test/archives/2018/11/",
    "http://a.test/events/2019/05/conference-talk.html",
    "http://a.test/calendar/how-it-works",
    "http://a.test/article?id=5&monthly=1&update=2019",
    "http://a.test/?s=bootloader-walleye&sid=12",
    "http://a.test/search?session=morning",
    "http://a.test/wiki/Foo_(bar)",
    f"http://a.test/{'/'.join(map(str, range(16)))}",
    "http://a.test/?a=1&b=2&c=3&d=4&e=5&f=6",
    "http://a.test/shop?colour=red&colour=blue",
    "http://[broken/a/b",
]


@pytest.mark.parametrize("rule", TRAPS)
def test_a_rule_holds_of_its_traps_and_of_no_others(rule: str) -> None:
    every, without = Traps(list(RULES)), Traps([name for name in RULES if name != rule])
    for url in TRAPS[rule]:
        assert every.rule_of(url) == rule
        assert Traps([rule]).rule_of(url) == rule
        assert without.rule_of(url) is None


def test_no_rule_holds_of_honest_urls() -> None:
    traps = Traps(list(RULES))
    assert {url: traps.rule_of(url) for url in HONEST} == dict.fromkeys(HONEST)
    assert set(RULES) == set(TRAPS), "each rule is tested"


def test_the_documentation_has_the_rules() -> None:
    text = (PROJECT / "docs/traps.md").read_text()
    assert [name for name, rule in RULES.items() if f"| `{name}` | {rule.meaning} |" not in text] == []


def test_no_hostile_url_takes_for_ever() -> None:
    began = time.process_time()
    traps = Traps(list(RULES))
    parts = ["/a", "/ab" * 2, "/" + "a" * 7, "(S(" + "a" * 20, "?date=", "&s=0", ";", "/events/", "/1999-"]
    for part in parts:
        url = "http://a.test/" + part * (200_000 // len(part))
        assert traps.rule_of(url) in {None, *RULES}
    assert time.process_time() - began < 30

"""What a robots.txt allows: the RFC's examples, cases that Google has published, and odd bytes, as facts in tables."""

from __future__ import annotations

import gc
import re
import time
import tracemalloc

import pytest
from hypothesis import given, strategies as st

from crawl4llm.optouts.robots_rules import ALLOW_ALL, LIMIT, Rules, groups_of, parse, product_token, signals_of, text_of

SITE = "http://example.com"

RFC_5_1 = """\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""
RFC_5_2 = """\
User-Agent: foobot
Allow: /example/page/
Disallow: /example/page/disallowed.gif
"""
TWO_GROUPS = "user-agent: ExampleBot\ndisallow: /foo\ndisallow: /bar\n\nuser-agent: ExampleBot\ndisallow: /baz\n"


def allowed(text: str | bytes, crawler: str, path: str) -> bool:
    body = text if isinstance(text, bytes) else text.encode()
    return parse(body, crawler).allows(SITE + path)


@pytest.mark.parametrize(
    ("text", "crawler", "yes", "no"),
    [
        # RFC 9309, 5.1: groups, several crawlers of one group, an empty group, all others.
        (RFC_5_1, "foobot", "/example/page.html /example/allowed.gif", "/ /example/ /publications/ /other.gif"),
        (RFC_5_1, "barbot", "/ /example/ /example/x.gif /publications/", "/example/page.html"),
        (RFC_5_1, "bazbot", "/ /example/ /example/x.gif /publications/", "/example/page.html"),
        (RFC_5_1, "quxbot", "/ /example/ /example/x.gif /example/page.html", ""),
        (RFC_5_1, "other", "/ /publications/ /a.gif?b /a.gift", "/example/ /example/page.html /a.gif"),
        # 5.2: the longest match is the one that holds.
        (RFC_5_2, "foobot", "/ /example/page/ /example/page/allowed.gif", "/example/page/disallowed.gif"),
        (RFC_5_2, "other", "/example/page/disallowed.gif", ""),
        # 2.2.1: groups of one crawler are one; names in any case; no group and no `*`: all is allowed.
        (TWO_GROUPS, "examplebot", "/ /qux", "/foo /bar /baz"),
        (TWO_GROUPS, "EXAMPLEBOT", "/", "/foo /baz"),
        (TWO_GROUPS, "examplebot-news", "/foo /baz", ""),
        ("user-agent: *\ndisallow: /a\nuser-agent: *\ndisallow: /b", "foo", "/c", "/a /b"),
        ("user-agent: foo\ndisallow: /a\nuser-agent: *\ndisallow: /b", "foo", "/b", "/a"),
        # 2.2.2: the start of the path, case of paths, allow before disallow where both are as long; /robots.txt.
        ("user-agent: foo\ndisallow: /A\n", "foo", "/a /b/A /", "/A /Ab /A/b"),
        ("user-agent: foo\ndisallow: /a\nallow: /a\n", "foo", "/a /a/b", ""),
        ("user-agent: foo\ndisallow: /\n", "foo", "/robots.txt", "/ /robots.txt.old /a/robots.txt"),
        ("user-agent: foo\ndisallow:\n", "foo", "/ /a", ""),
        # 2.2.2: octets and their percent-encoding.
        ("user-agent: foo\ndisallow: /foo/bar?baz=quz", "foo", "/foo/bar", "/foo/bar?baz=quz /foo/bar?baz=quz&a=b"),
        ("user-agent: foo\ndisallow: /foo/bar?baz=http://a.b", "foo", "/foo/bar?baz=", "/foo/bar?baz=http://a.b"),
        ("user-agent: foo\ndisallow: /foo/bar/ツ", "foo", "/foo/bar/", "/foo/bar/%E3%83%84 /foo/bar/%e3%83%84"),
        ("user-agent: foo\ndisallow: /foo/bar/%E3%83%84", "foo", "/foo/bar/", "/foo/bar/%E3%83%84 /foo/bar/ツ"),
        ("user-agent: foo\ndisallow: /foo/bar/%62%61%7A", "foo", "/foo/bar/", "/foo/bar/baz /foo/bar/%62%61%7A"),
        # 2.2.3: `#`, `$` and `*`, and how they stand for themselves.
        ("user-agent: foo # us\ndisallow: /a # this\n# disallow: /b", "foo", "/b /", "/a"),
        ("user-agent: foo\ndisallow: /this/path/exactly$", "foo", "/this/path/exactly/ /x", "/this/path/exactly"),
        ("user-agent: foo\ndisallow: /this/*/exactly", "foo", "/this/exactly", "/this/a/exactly /this/a/b/exactly?c"),
        ("user-agent: foo\ndisallow: /a-%2A.html", "foo", "/a-b.html", "/a-*.html /a-%2A.html"),
        ("user-agent: foo\ndisallow: /foo-%24", "foo", "/foo-", "/foo-$ /foo-$a /foo-%24"),
        # 2.2.4: other records, which end no group.
        ("user-agent: foo\nsitemap: http://a.b/c\nuser-agent: bar\ndisallow: /", "foo", "", "/"),
        ("user-agent: foo\nunknown: x\nuser-agent: bar\ndisallow: /", "foo", "", "/"),
        ("user-agent: foo\ncrawl-delay: 5\nuser-agent: bar\ndisallow: /", "foo", "", "/"),
        ("user-agent: foo\ncrawl-delay: 5\nuser-agent: bar\ndisallow: /", "bar", "", "/"),
        ("user-agent: foo\nallow: /\nuser-agent: bar\ndisallow: /", "foo", "/", ""),
        ("user-agent: foo\ndisallow:\nuser-agent: bar\ndisallow: /", "foo", "/", ""),
        # Google: rules before any group belong to nobody; an empty name is nobody's.
        ("disallow: /\nuser-agent: foo\nallow: /a", "foo", "/ /a", ""),
        ("user-agent: foo\ndisallow: /a\nuser-agent:\ndisallow: /b", "foo", "/b", "/a"),
        # Google: names of lines in any case, with or without a colon and blanks, with common slips.
        ("USER-AGENT: foo\nDISALLOW: /", "foo", "", "/"),
        ("user-agent foo\ndisallow /", "foo", "", "/"),
        ("  user agent :  foo  \n\t useragent:baz\n dissallow: /a\n\tdissalow :/b\ndisalow:/c", "foo", "/", "/a /b /c"),
        ("foo: bar\nuser-agent foo\ndisallow: /", "bar", "/", ""),
        # Google: a name up to its first blank; versions do not matter; it is no prefix of others, nor they of it.
        ("user-agent: Foo Bar\ndisallow: /", "foo", "", "/"),
        ("user-agent: foo/1.2\ndisallow: /", "foo", "", "/"),
        ("user-agent: foobar\ndisallow: /", "foo", "/", ""),
        ("user-agent: foo\ndisallow: /", "foobar", "/", ""),
        ("user-agent: * baz\ndisallow: /", "foo", "", "/"),
        ("user-agent: foo*\ndisallow: /", "foo", "", "/"),
        # Google: which rule holds (its table of precedence).
        ("user-agent: *\nallow: /p\ndisallow: /", "foo", "/page", "/"),
        ("user-agent: *\nallow: /folder\ndisallow: /folder", "foo", "/folder/page", ""),
        ("user-agent: *\nallow: /page\ndisallow: /*.htm", "foo", "/page", "/page.htm"),
        ("user-agent: *\nallow: /page\ndisallow: /*.ph", "foo", "/page.php5", "/x.php5"),
        ("user-agent: *\nallow: /$\ndisallow: /", "foo", "/", "/page.htm"),
        ("user-agent: *\nallow: /a/index.html\ndisallow: /a/", "foo", "/a/ /a/index.html", "/a/b /a/index.htm"),
        # Google: which paths a rule is for (its table of paths).
        ("user-agent: *\ndisallow: /fish", "foo", "/Fish.asp /catfish /?id=fish /desert/fish", "/fish /fishheads/x?a"),
        ("user-agent: *\ndisallow: /fish*", "foo", "/Fish.asp /catfish /?id=fish", "/fish /fish.html /fishheads"),
        ("user-agent: *\ndisallow: /fish/", "foo", "/fish /fish.html /Fish/a", "/fish/ /fish/?id=a /fish/salmon.htm"),
        ("user-agent: *\ndisallow: /*.php", "foo", "/ /windows.PHP", "/index.php /a/b.php?c /a.php/ /a.php.b"),
        ("user-agent: *\ndisallow: /*.php$", "foo", "/a.php?b /a.php/ /a.php5 /windows.PHP", "/a.php /a/b.php"),
        ("user-agent: *\ndisallow: /fish*.php", "foo", "/Fish.PHP /fish", "/fish.php /fishheads/catfish.php?a"),
        ("user-agent: *\ndisallow: *", "foo", "", "/ /a"),
        ("user-agent: *\ndisallow: fish", "foo", "/fish", ""),
        # Google: a run of names ends with its first rule, also an empty one; what is no rule belongs to nobody's run.
        (
            "user-agent: a\n\n# why\nfoo: bar\nuser-agent: foo\n\ndisallow: /a\nuser-agent: b\ndisallow: /b",
            "foo",
            "/b",
            "/a",
        ),
        ("user-agent: foo\nallow:\nuser-agent: b\ndisallow: /", "foo", "/", ""),
        ("user-agent: foo\ncrawl-delay: 9\nuser-agent: *\ndisallow: /a", "foo", "/b", "/a"),
        (
            "user-agent: foo\ndisallow: /a\nuser-agent: b\ndisallow: /\nuser-agent: foo\nallow: /a/b",
            "foo",
            "/ /a/b",
            "/a",
        ),
        # Google: names that begin so; lines without a colon have two words, others are prose; a comment ends a line.
        ("user-agents: foo\ndisallowed: /a\nallowed: /a/b", "foo", "/a/b", "/a"),
        ("user-agent: foo\ndisallow /a\ndisallow /b or not\nuser-agent is a name\ndisallow: /c", "foo", "/b", "/a /c"),
        ("user-agent: foo\ndisallow\nuser-agent: b\ndisallow: /a", "foo", "/", "/a"),
        ("user-agent#: foo\ndisallow: /", "foo", "/", ""),
        ("user-agent: foo\ndisallow /a:b", "foo", "/a", "/a:b"),
        # A robots.txt that an editor has made HTML.
        ("<html>\n<body>\nuser-agent: *<BR>\ndisallow: /a<br />\ncrawl-delay: 9<br><br/>\n</body>", "foo", "/", "/a"),
        # RFC 9309, 2.2.2: of rules as long, however they are written, allow counts.
        ("user-agent: foo\ndisallow: /a*c\nallow: /ab*", "foo", "/abc", "/a-c"),
        ("user-agent: foo\nallow: /%7ea\ndisallow: /~a", "foo", "/~a", ""),
        # Google: an allowed index.html allows its folder, and no more.
        (
            "user-agent: *\nallow: /a/index.html\ndisallow: /",
            "foo",
            "/a/ /a/index.html",
            "/ /a /a/b /a/?c /a/index.htm",
        ),
        ("user-agent: *\nallow: /a/index.htm?x\ndisallow: /", "foo", "/a/ /a/index.htm?x", "/a/index.htm"),
        ("user-agent: *\nallow: index.html\ndisallow: /", "foo", "", "/ /index.html"),
        ("user-agent: *\ndisallow: /a/index.html", "foo", "/a/", "/a/index.html"),
        # A % without two hexadecimal digits is %25, in rule and URL.
        ("user-agent: *\ndisallow: /50%-off/", "foo", "/50-off/ /50", "/50%-off/a /50%25-off/a"),
        ("user-agent: *\ndisallow: /50%25-off/", "foo", "/50/", "/50%-off/a /50%25-off/a"),
        (
            "user-agent: *\ndisallow: /a%\ndisallow: /b%4\ndisallow: /c%zz",
            "foo",
            "/a /b4",
            "/a% /a%25b /b%4 /b%254 /c%zz",
        ),
        # 2.2.2: reserved characters equal their encoding, but for the delimiters of paths and queries.
        ("user-agent: *\ndisallow: /a?b=c&d='e'", "foo", "/a?b=c", "/a?b=c&d='e' /a?b%3Dc%26d=%27e%27"),
        ("user-agent: *\ndisallow: /*?", "foo", "/who%3F /who%3f", "/who? /a/b?c"),
        ("user-agent: *\ndisallow: /a%2Fb\ndisallow: /c/d", "foo", "/a/b /c%2Fd", "/a%2fb /c/d"),
        # A pattern is no reference: its dots stay, a name alone is no path, nor is a URL.
        ("user-agent: *\ndisallow: /.", "foo", "/ /a", "/.git /.git/config"),
        ("user-agent: *\ndisallow: /a/../b", "foo", "/b /a", ""),
        ("user-agent: *\ndisallow: http://example.com/a", "foo", "/a", ""),
        # `*` and `$` within a path.
        ("user-agent: *\ndisallow: /a$b", "foo", "/a /ab", "/a$b /a%24bc"),
        ("user-agent: *\ndisallow: /a***b$\ndisallow: /*/*c", "foo", "/abc", "/a/b /ab /x/c"),
        ("user-agent: *\ndisallow: /$", "foo", "/a /?a /$", "/"),
        # robots.txt itself is always allowed.
        ("user-agent: *\ndisallow: *", "foo", "/robots.txt /robots.txt?a", "/robots.txt/a"),
        # Google: the query counts, the fragment does not.
        ("user-agent: *\ndisallow: /*?id=", "foo", "/a#?id=b", "/a?id=b /a?id="),
    ],
)
def test_groups_and_paths(text: str, crawler: str, yes: str, no: str) -> None:
    told = {path: allowed(text, crawler, path) for path in (yes + " " + no).split()}
    assert told == {**dict.fromkeys(yes.split(), True), **dict.fromkeys(no.split(), False)}


RULES = "User-agent: *\nDisallow: /private/ü\nDisallow: /x\n"


@pytest.mark.parametrize(
    "body",
    [
        RULES.encode(),
        RULES.encode("utf-8-sig"),
        RULES.encode("utf-16"),
        b"\xfe\xff" + RULES.encode("utf-16-be"),
        RULES.encode("utf-16") + b"\n",  # half a character
        RULES.replace("\n", "\r\n").encode(),
        RULES.replace("\n", "\r").encode(),
        RULES.replace("\n", "\r\n\r\n \t\r\n").encode("utf-16"),
        RULES.strip().encode(),
        b"\xef\xbb" + RULES.encode(),  # what an editor has left of a mark
        b"\0\1\2\xff\xfe\xfd\n" + RULES.encode() + bytes(range(256)),
    ],
)
def test_encodings_and_line_ends(body: bytes) -> None:
    assert not allowed(body, "foo", "/private/%C3%BC")
    assert not allowed(body, "foo", "/x")
    assert allowed(body, "foo", "/private/a")


def test_bytes_of_another_charset_are_percent_encoded() -> None:
    body = "user-agent: *\ndisallow: /größe\n".encode("latin-1")
    assert not allowed(body, "foo", "/gr%F6%DFe")
    assert allowed(body, "foo", "/gr")


@pytest.mark.parametrize("end", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_nothing_else_ends_a_line(end: str) -> None:
    """Python's splitlines() would make a rule of the rest."""
    assert parse(f"user-agent: *\ndisallow: /a{end}disallow: /\n".encode(), "foo").allows(f"{SITE}/b")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"\xef",
        b"\0" * 5000,
        bytes(range(256)) * 40,
        b"<!DOCTYPE html>\n<html><head><title>Not found</title></head>\n<body>disallow: /\n</body></html>",
        b"\x1f\x8b\x08\x00 not unpacked",
        b"User-agent: \xff\nDisallow: /",
        b"Disallow: /",
    ],
)
def test_what_is_no_robots_txt_allows_all(body: bytes) -> None:
    assert parse(body, "foo") is ALLOW_ALL
    assert ALLOW_ALL.allows(f"{SITE}/")


def test_500_kib_are_parsed() -> None:
    head, rule, late = b"user-agent: *\ndisallow: /early\n", b"disallow: /last\n", b"disallow: /late\n"
    filler = b"#" * (LIMIT - len(head) - len(rule) - 1) + b"\n"
    rules = parse(head + filler + rule + late, "foo")
    assert [rules.allows(SITE + path) for path in ("/early", "/last", "/late")] == [False, False, True]
    assert len(text_of(head + filler + rule + late)) == LIMIT

    cut = parse(head + filler[1:] + b"disallow: /last-and-longer\n", "foo")
    assert cut.allows(f"{SITE}/last"), "half a line would forbid more than was written"
    assert not cut.allows(f"{SITE}/early")
    exact = head + filler + b"disallow: /last"
    assert not parse(exact, "foo").allows(f"{SITE}/last"), "what just fits is not cut"


@pytest.mark.parametrize(
    "rule", ["*a*a*a*a*a*a*{}b", "/*" + "a" * 40 + "{}b", "*a" * 20 + "{}$", "/" + "*a" * 8000 + "{}b"]
)
def test_hostile_patterns_are_bounded(rule: str) -> None:
    """A regular expression would take years. Here the time is that of one search for each part of each pattern."""
    body = "user-agent: *\n" + "".join(f"disallow: {rule.format(n)}\n" for n in range(LIMIT // len(rule)))
    rules = parse(body.encode(), "foo")
    began = time.process_time()
    assert rules.allows(f"{SITE}/{'a' * 2083}")  # URLLENGTH_LIMIT
    assert time.process_time() - began < 1  # 0.05 s measured


@pytest.mark.parametrize(
    "line",
    [
        *("disallow: /*a*a*a*a*a*a*a*b\n", "user-agent: a\n", "disallow: /a$\n", "user-agent: *\ndisallow: /\n", "a"),
        *("<br" + " " * 50, f"{'<br>' * 4000}x>\n", f"user-agent{'x' * 16_000}\n", f"disallow{' ' * 16_000}\n"),
        *(f"disallow: /{'%' * 16_000}\n", f"user-agent: mozilla/{'x' * 16_000}\n", f"crawl-delay: {'9' * 16_000}\n"),
    ],
)
def test_hostile_files_take_no_time(line: str) -> None:
    body = b"user-agent: *\n" + (line * (LIMIT // len(line))).encode()
    began = time.process_time()
    rules = parse(body, "foo")
    rules.allows(f"{SITE}/{'a' * 2000}")
    assert time.process_time() - began < 5


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode), st.text(max_size=20))
def test_any_bytes_give_rules(body: bytes, more: str) -> None:
    rules = parse(b"user-agent: *\ndisallow: /x\n" + body, "foo")
    assert isinstance(rules.allows(f"{SITE}/{more}"), bool)
    assert isinstance(parse(body, "foo"), Rules)


GROUPS_WITH_DELAYS = """\
user-agent: *
crawl-delay: 1
user-agent: SlowBot
crawl-delay: 3600
sitemap: /s
user-agent: a
user-agent: b

# both
crawl-delay: 5
user-agent: c
disallow: /x
user-agent: d
crawl-delay: 7
disallow: /y
"""


@pytest.mark.parametrize(
    ("crawler", "delay", "forbidden"),
    [
        *(("foo", 1, "/x"), ("SlowBot", 3600, "/x"), ("a", 5, "/x"), ("b", 5, "/x"), ("c", None, "/x"), ("d", 7, "/y")),
    ],
)
def test_a_delay_is_for_the_crawlers_just_named(crawler: str, delay: float | None, forbidden: str) -> None:
    rules = parse(GROUPS_WITH_DELAYS.encode(), crawler)
    assert rules.crawl_delay == delay
    assert [path for path in ("/x", "/y") if not rules.allows(SITE + path)] == [forbidden]


def test_the_delay_of_another_is_not_that_of_all() -> None:
    slow = "user-agent: SlowBot\ncrawl-delay: 3600\n"
    for text in (
        f"{slow}user-agent: *\ndisallow: /x",
        f"user-agent: *\nfoo: 1\n{slow}",
    ):
        assert parse(text.encode(), "foo").crawl_delay is None
    assert parse(b"user-agent: *\nuser-agent: SlowBot\ncrawl-delay: 3600\n", "foo").crawl_delay == 3600


def test_signals_are_for_the_crawlers_just_named() -> None:
    """But rules, as Content-Usage is by its draft, are for all of a run; and licences for everybody."""
    others = "user-agent: *\ncontent-signal: search=yes\nuser-agent: OtherBot\n"
    for text, said in (
        (f"{others}content-signal: ai-train=no\ndisallow: /x", []),
        (f"{others}content-usage: train-ai=n", ["train-ai=n"]),
        (f"{others}license: https://h/license", ["https://h/license"]),
        (f"{others}disallow:\nuser-agent: *\ncontent-signal: ai-train=no", ["ai-train=no"]),
        ("user-agent: OtherBot\ncontent-signal: ai-train=no\nuser-agent: *\nallow: /", []),
        ("user-agent: OtherBot\ncontent-usage: train-ai=n\nuser-agent: *\nallow: /", []),
    ):
        for signals in (parse(text.encode(), "foo").said(f"{SITE}/"), signals_of(text.encode(), "foo").of(f"{SITE}/")):
            assert [one.value for one in signals] == said, text


@pytest.mark.parametrize(
    ("lines", "delay"),
    [
        ("crawl-delay: 10\ncrawl-delay: 3", 10),
        ("crawl-delay: 3\nuser-agent: foo\ncrawl-delay: 10", 10),
        *(
            (f"crawl-delay: {value}", None)
            for value in ("soon", "-1", "inf", "nan", "1e9", "1_0", "10s", "9" * 400, "")
        ),
        *((f"crawl-delay{value}", 2.5) for value in (":2.5", " 2.5", " : 2.5 # s", ": 2.50")),
        ("crawl-delay: .5", 0.5),
        ("crawl delay: 5", 5),
        ("crawl-delays: 5", None),
    ],
)
def test_values_of_delays(lines: str, delay: float | None) -> None:
    """Of several the longest counts."""
    assert parse(f"user-agent: foo\n{lines}".encode(), "foo").crawl_delay == delay


def test_a_line_is_read_as_far_as_google_does() -> None:
    """16,663 characters; the rest of a line is left out."""
    path = "/" + "a" * (8 * 2083 - 1 - len("disallow: /"))
    rules = parse(f"user-agent: *\ndisallow: {path}bc\nallow: {path[:-3]}bc\n".encode(), "foo")
    assert [rules.allows(SITE + one) for one in (path, f"{path}x", path[:-1])] == [False, False, True]


def test_crawl_delay() -> None:
    text = "user-agent: foo\ncrawl-delay: 2.5\ndisallow: /a\nuser-agent: *\nCrawl-Delay: 10"
    assert [parse(text.encode(), name).crawl_delay for name in ("foo", "bar")] == [2.5, 10]
    assert parse(b"user-agent: *\ncrawl-delay: soon", "foo").crawl_delay is None
    assert ALLOW_ALL.crawl_delay is None


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/a", "disallow: /a"),
        ("/a/b-c", "disallow: /a/b*c"),
        ("/a/end", "disallow: /a/end$"),
        ("/a/endless", "disallow: /a"),
        ("/x/y.pdf?z", "disallow: /*.pdf"),
        ("?q=1", "disallow: /?q="),
        ("/%7Etilde", "disallow: /~tilde"),
        ("/b%C3%A4r", "disallow: /b\u00e4r"),
    ],
)
def test_the_line_that_forbids_a_url_is_the_longest_that_matches(path: str, line: str) -> None:
    lines = "/a|/a/b*c|/a/end$|/*.pdf|/?q=|/~tilde|/bär|/other".split("|")
    rules = parse("".join(["user-agent: *\n", *(f"disallow: {one}\n" for one in lines)]).encode(), "foo")
    assert not rules.allows(f"http://h.example{path}")
    assert rules.line_against(f"http://h.example{path}") == line


PATTERN = st.text("/ab*$", min_size=1, max_size=6).map(lambda text: f"/{text}")
RULE = st.tuples(st.sampled_from(["allow", "disallow"]), PATTERN)


@given(st.lists(RULE, min_size=1, max_size=5), st.text("/ab$", max_size=8))
def test_rules_are_those_of_regular_expressions(rules: list[tuple[str, str]], path: str) -> None:
    """The longest that matches counts, and allow before disallow; a ``$`` within a pattern counts as three characters,
    as it is encoded."""
    matching = []
    for name, pattern in rules:
        begins = ".*".join(re.escape(part) for part in pattern.removesuffix("$").split("*"))
        if re.fullmatch(begins + ("" if pattern.endswith("$") else ".*"), f"/{path}"):
            matching.append((len(pattern) + 2 * pattern[:-1].count("$"), name == "allow"))
    text = "user-agent: *\n" + "".join(f"{name}: {pattern}\n" for name, pattern in rules)
    assert allowed(text, "foo", f"/{path}") is max(matching, default=(0, True))[1]


@given(st.lists(st.text("/ab*$", min_size=1, max_size=6), max_size=8), st.text("/ab", max_size=8))
def test_there_is_a_line_for_each_url_that_is_forbidden(paths: list[str], path: str) -> None:
    rules = parse("".join(["user-agent: *\n", *(f"disallow: {one}\n" for one in paths)]).encode(), "foo")
    url = f"http://h.example/{path}"
    if (line := rules.line_against(url)) is not None:
        assert line.removeprefix("disallow: ") in {one.strip() for one in paths}
    assert rules.allows(url) is (line is None)


def test_directives_of_a_group_are_in_order() -> None:
    text = "user-agent: foo\nallow: /b\ndisallow: /a # why\nsitemap: /s\nuser-agent: bar\ndisallow: /c"
    assert groups_of(text, "foo")["foo"] == [("allow", "/b"), ("disallow", "/a")]


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        ("FooBot/1.0 (+https://foo.example)", "foobot"),
        ("foo-bot_2", "foo-bot_2"),
        ("Foo (bar)", "foo"),
        ("Mozilla/5.0 (compatible; FooBot/2.1; +http://foo.example/bot)", "foobot"),
        ("mozilla/5.0 ( Compatible;FooBot)", "foobot"),
        ("Mozilla/5.0 (X11; Linux x86_64)", "mozilla"),
        ("  foo", "foo"),
        ("", ""),
        (" ", ""),
        ("(+https://foo.example)", ""),
    ],
)
def test_product_token(user_agent: str, name: str) -> None:
    assert product_token(user_agent) == name


@pytest.mark.usefixtures("nothing_before")
@pytest.mark.parametrize(
    "rule",
    [
        *("disallow: /a{}\n", "disallow: /{}/*/b$\n", "allow: /ü{}?b=c" + "d" * 200 + "\n"),
        *("disallow: /{}" + "*ab" * 50 + "\n", "disallow: /{}" + "*ab" * 50 + "$\n"),
        *("content-usage: /a{}/ train-ai=n\n", "user-agent: gptbot\ndisallow: /{}*a*b*c*d*e/\n"),
    ],
)
@pytest.mark.parametrize("number", [1, 50, 500])
def test_memory_is_not_underestimated(rule: str, number: int) -> None:
    body = ("user-agent: *\n" + "".join(rule.format(n) for n in range(number))).encode()
    parse(body, "foo").allows(f"{SITE}/")
    gc.collect()
    tracemalloc.start()
    rules = parse(body, "foo")
    rules.allows(f"{SITE}/")  # what is made at the first match
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert rules.size / 5 < taken < rules.size

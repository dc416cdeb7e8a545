"""What a robots.txt allows: the RFC's examples, cases that Google has published, and odd bytes, as facts in tables."""

from __future__ import annotations

import gc
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawl4llm.optouts.robots_rules import ALLOW_ALL, LIMIT, Rules, groups_of, parse, product_token, text_of

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
    "line", ["disallow: /*a*a*a*a*a*a*a*b\n", "user-agent: a\n", "disallow: /a$\n", "user-agent: *\ndisallow: /\n", "a"]
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


@given(st.lists(st.text("/ab*$", min_size=1, max_size=6), max_size=8), st.text("/ab", max_size=8))
def test_there_is_a_line_for_each_url_that_is_forbidden(paths: list[str], path: str) -> None:
    rules = parse("".join(["user-agent: *\n", *(f"disallow: {one}\n" for one in paths)]).encode(), "foo")
    url = f"http://h.example/{path}"
    if not rules.allows(url):
        rule = rules.line_against(url).removeprefix("disallow: ")
        assert rule in {one.strip() for one in paths}


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


@pytest.mark.parametrize(
    "rule",
    [
        *("disallow: /a{}\n", "disallow: /{}/*/b$\n", "allow: /ü{}?b=c" + "d" * 200 + "\n"),
        *("disallow: /{}" + "*ab" * 50 + "\n", "disallow: /{}" + "*ab" * 50 + "$\n"),
        *("content-usage: /a{}/ train-ai=n\n", "user-agent: gptbot\ndisallow: /{}*a*b*c*d*e/\n"),
    ],
)
@pytest.mark.parametrize("number", [1, 50, 2000])
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

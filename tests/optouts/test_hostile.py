"""Hostile input to the readers of signals: long, deep, broken. They end soon, and never raise."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc

import pytest
from hypothesis import example, given, strategies as st

from crawl4llm.base.html_tree import HtmlTree
from crawl4llm.optouts.html_meta import said_in_html, said_in_tree
from crawl4llm.optouts.robots_rules import LIMIT as ROBOTS_LIMIT, parse
from crawl4llm.optouts.said import as_text, from_text
from crawl4llm.optouts.tdmrep import TdmRules
from crawl4llm.optouts.values import said_in_head

URL = "http://h/" + "ab" * 1000
NOAI = b'<meta name="robots" content="noai">'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<!DOCTYPE html><p>not here",
        b'{"location": "/", "tdm-reservation": 1}',
        b'[{"location": "/", "tdm-reservation": 1}',
        b"[" * 100_000 + b"]" * 100_000,
        b'[{"location": "/", "tdm-reservation": 1}' + b" " * 10_000_000 + b"]",
        b'[{"location": 1, "tdm-reservation": 1}, {"tdm-reservation": 1}, 7, null, {"location": "", "x": 1}]',
        b'[{"location": "/", "tdm-reservation": true, "tdm-policy": 1}'[:-1],
        b'[{"location": "/", "tdm-reservation": {}}]',
        b"\xff\xfe[\x00]\x00",
    ],
)
def test_a_tdmrep_that_is_none_says_nothing(body: bytes) -> None:
    assert TdmRules(body).of(URL) == []


def test_a_tdmrep_with_a_mark_and_odd_rules_is_read() -> None:
    body = b'\xef\xbb\xbf[7, {"location": "/", "tdm-reservation": 1, "tdm-policy": 5}]'
    assert [one.value for one in TdmRules(body).of(URL)] == ["1"]


@pytest.mark.parametrize("number", [1, 50, 500])
@pytest.mark.parametrize("location", ["/{}", "/{}*a*b*c*d$", "/" + "x" * 100 + "{}"])
@pytest.mark.usefixtures("nothing_before")
def test_memory_of_a_tdmrep_is_not_underestimated(location: str, number: int) -> None:
    rules = [
        {"location": location.format(n), "tdm-reservation": 1, "tdm-policy": f"https://h/{n}"} for n in range(number)
    ]
    body = json.dumps(rules).encode()
    size = TdmRules(body).size
    assert size / 5 < min(_memory_of_a_tdmrep(body) for _ in range(3)) < size


def _memory_of_a_tdmrep(body: bytes) -> int:
    """Bytes, and what threads of other tests allocate meanwhile."""
    gc.collect()
    tracemalloc.start()
    found = TdmRules(body)
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert found.size
    return taken


@pytest.mark.parametrize(
    "html",
    [
        b"<!-- " + NOAI,
        b"<!-- " + NOAI + b" -->",
        b"<script>'" + NOAI + b"'</script>",
        b"<title>" + NOAI + b"</title>",
        b"<style>" + NOAI,
        b"<template>" + NOAI + b"</template>",
        b"<svg><title>" + NOAI.replace(b"<", b"&lt;") + b"</title></svg>",
        b"<p title='" + NOAI + b"'>",
        b'<meta name="description" content="robots: noai">',
        b'<meta content="noai">robots',
        b"<metaname=robots content=noai>",
    ],
)
def test_what_is_no_meta_of_the_head_says_nothing(html: bytes) -> None:
    assert said_in_html(html, "testbot") == []


@pytest.mark.parametrize(
    "html",
    [
        NOAI,
        b"<META\nCONTENT = ' NoAI '\tNAME=ROBOTS />",
        b'<meta name="robots" name="x" content=noai>',
        b"<!-- --><meta name=TestBot content=index,noai >",
        b"<script></script><meta name=robots content=noai data-x='\xff\xfe'>",
    ],
)
def test_a_meta_in_any_spelling(html: bytes) -> None:
    assert [one.value for one in said_in_html(b"<html><head>" + html + b"</head>", "testbot")] == ["noai"]


@pytest.mark.parametrize(
    "unit",
    [b"<meta ", b'<meta name="robots" ', b"<!--", b"<script", b"<title>", b"<link/", b"<meta a=", b"x=", b"<meta '\">"],
)
def test_html_ends_soon(unit: bytes) -> None:
    began = time.process_time()
    said_in_html(b"robots noindex tdm-" + unit * ((1 << 20) // len(unit)), "testbot")
    assert time.process_time() - began < 5  # quadratic would be minutes


@pytest.mark.parametrize(
    "text",
    [
        "User-agent: GPTBot\n" + "Disallow: /{}*a*b*a*b*c\n" * 15_000,
        "User-agent: GPTBot\n" + "Disallow: /" + "*a" * 240_000 + "$\n",
        "User-agent: GPTBot\n" * 20_000 + "Disallow: /x\n" * 10_000,
        "".join(f"User-agent: bot{n}\n" for n in range(12_000)) + "Content-Usage: train-ai=n\n" * 9_000,
        "User-agent: *\nContent-Usage: " + "a=(b c d), " * 40_000 + "\n",
        "License: https://h/" + "x" * 400_000,
    ],
)
def test_robots_txt_ends_soon(text: str) -> None:
    began = time.process_time()
    rules = parse(text.encode()[:ROBOTS_LIMIT], "testbot")
    for _ in range(10):
        assert len(as_text(rules.said(URL))) <= 1024
    assert time.process_time() - began < 20  # backtracking would be years


@given(st.binary(max_size=300), st.text(max_size=30))
def test_any_bytes_give_some(data: bytes, crawler: str) -> None:
    parse(data, crawler).said(URL)
    said_in_html(b"<meta name=robots " + data, crawler.lower())
    TdmRules(data).of(URL)
    for name in (b"X-Robots-Tag", b"Content-Usage", b"Content-Signal", b"TDM-Reservation", b"TDM-Policy", b"Link"):
        found = said_in_head([(name, data), (name, data)], crawler.lower())
        assert len(from_text(as_text(found))) <= len(found)


PARTS = (
    *(" ", "\n", "\0", "no\0ai"),
    *"<meta <link / > = ' \" <!-- --> <title> <template> </template>".split(),
    *"name content http-equiv rel type href license application/rsl+xml x".split(),
    *"robots ROBOTS testbot rob&#111;ts noai NoAI &#x6e;oai none noindex,".split(),
    *"tdm-reservation TDM-Policy 1 Content-Usage train-ai=n content&#45;signal ai-train=no".split(),
)


@given(st.lists(st.sampled_from(PARTS), max_size=30), st.sampled_from(["", "testbot"]))
@example(["<meta", " ", "name", "=", "robots", " ", "content", "=", "noai", ">"], "")
def test_what_is_not_parsed_would_say_nothing(parts: list[str], crawler: str) -> None:
    html = "".join(parts).encode()
    assert said_in_html(html, crawler) == said_in_tree(HtmlTree(html), crawler)


@given(st.text(max_size=200))
def test_any_line_is_read(text: str) -> None:
    from_text(text)
    from_text(f"header * page robots {text}; X-Robots-Tag: {text}; Link: {text}")

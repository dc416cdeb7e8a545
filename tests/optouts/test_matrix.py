"""Every signal in every place, for every agent and action: written by hand, and equal to the table in the docs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from crawl4llm.optouts.heard import Heard, OfDomain
from crawl4llm.optouts.html_meta import said_in_html
from crawl4llm.optouts.robots_rules import parse
from crawl4llm.optouts.said import Said, as_text, decide, from_text
from crawl4llm.optouts.table import HEADER, META, OPERATOR, ROBOTS_TXT, TDMREP, Action
from crawl4llm.optouts.tdmrep import TdmRules
from crawl4llm.optouts.values import said_in_head

DOCS = Path(__file__).resolve().parents[2] / "docs/opt-outs.md"
URL = "http://example.com/part/page?q=1"
OURS = "testbot"
AGENTS = {"all": "*", "ours": "TestBot", "training": "GPTBot", "other": "OtherBot"}

ALL, ENDS = "fetch archive score expand export", "archive score expand export"
NO_ONE, EVERYBODY = "", "all ours training"

# Signal, value, place; the agents for whom it counts here; what it forbids; what it forbids with OPT_OUT_FETCH = 1.
MATRIX = [
    ("Content-Signal", "ai-train=no", ROBOTS_TXT, EVERYBODY, ALL, "export"),
    ("Content-Signal", "ai-train=no", HEADER, "all", ENDS, "export"),
    ("Content-Signal", "ai-input=no", ROBOTS_TXT, EVERYBODY, ALL, "export"),
    ("Content-Signal", "ai-input=no", HEADER, "all", ENDS, "export"),
    ("Content-Signal", "use=immediate", ROBOTS_TXT, EVERYBODY, ALL, ALL),
    ("Content-Signal", "use=immediate", HEADER, "all", ENDS, ENDS),
    ("Content-Signal", "use=reference", ROBOTS_TXT, EVERYBODY, ALL, "export"),
    ("Content-Signal", "use=reference", HEADER, "all", ENDS, "export"),
    ("Content-Signal", "search=no", ROBOTS_TXT, EVERYBODY, "", ""),
    ("Content-Signal", "search=no", HEADER, "all", "", ""),
    ("Content-Usage", "train-ai=n", ROBOTS_TXT, EVERYBODY, ALL, "export"),
    ("Content-Usage", "train-ai=n", HEADER, "all", ENDS, "export"),
    ("Content-Usage", "search=n", ROBOTS_TXT, EVERYBODY, "", ""),
    ("Content-Usage", "search=n", HEADER, "all", "", ""),
    ("AI-crawler", "disallow", ROBOTS_TXT, "training", ALL, "export"),
    ("robots", "noindex", HEADER, "all ours", "export", "export"),
    ("robots", "noindex", META, "all ours", "export", "export"),
    ("robots", "nofollow", HEADER, "all ours", "expand", "expand"),
    ("robots", "nofollow", META, "all ours", "expand", "expand"),
    ("robots", "none", HEADER, "all ours", "expand export", "expand export"),
    ("robots", "none", META, "all ours", "expand export", "expand export"),
    ("robots", "noarchive", HEADER, "all ours", ENDS, ENDS),
    ("robots", "noarchive", META, "all ours", ENDS, ENDS),
    ("robots", "noai", HEADER, "all ours", ENDS, "export"),
    ("robots", "noai", META, "all ours", ENDS, "export"),
    ("robots", "noimageai", HEADER, "all ours", "", ""),
    ("robots", "noimageai", META, "all ours", "", ""),
    ("tdm-reservation", "1", HEADER, "all", ENDS, "export"),
    ("tdm-reservation", "1", META, "all", ENDS, "export"),
    ("tdm-reservation", "1", TDMREP, "all", ALL, "export"),
    ("tdm-policy", "https://example.com/policy", HEADER, "all", "", ""),
    ("tdm-policy", "https://example.com/policy", META, "all", "", ""),
    ("tdm-policy", "https://example.com/policy", TDMREP, "all", "", ""),
    ("RSL", "https://example.com/license.xml", ROBOTS_TXT, "all", "", ""),
    ("RSL", "https://example.com/license.xml", HEADER, "all", "", ""),
    ("RSL", "https://example.com/license.xml", META, "all", "", ""),
    ("blocked", "domain", OPERATOR, "all", "export", "export"),
]
# What is not in the table: permissions, and what they do not lift; values that are malformed.
SILENT = [
    ("Content-Signal", "ai-train=yes", ROBOTS_TXT),
    ("Content-Signal", "ai-train=yes", HEADER),
    ("Content-Signal", "ai-train=nope, train=no", ROBOTS_TXT),
    ("Content-Usage", "train-ai=y", ROBOTS_TXT),
    ("Content-Usage", "train-ai=y", HEADER),
    *(("Content-Usage", value, HEADER) for value in ("train-ai=N", "Train-AI=n", "train-ai=no", 'train-ai="n"')),
    *(("Content-Usage", value, ROBOTS_TXT) for value in ("train-ai=n,", "train-ai=n train-ai=n", "train-ai=(n)", "=")),
    ("robots", "index, follow, max-snippet:-1", HEADER),
    ("robots", "index, follow, noindexing", META),
    ("tdm-reservation", "0", HEADER),
    ("tdm-reservation", "true", META),
    ("tdm-reservation", "2", TDMREP),
]


def said(signal: str, value: str, place: str, agent: str) -> list[Said]:
    """What is read where a signal stands in a place for an agent; nothing where it has no form there."""
    forms: dict[tuple[str, str], Callable[[], list[Said]]] = {
        (ROBOTS_TXT, "RSL"): lambda: robots(f"License: {value}"),
        (ROBOTS_TXT, "AI-crawler"): lambda: robots(f"User-agent: {agent}\nDisallow: /"),
        (HEADER, "robots"): lambda: head("X-Robots-Tag", value if agent == "*" else f"{agent}: {value}"),
        (HEADER, "RSL"): lambda: head("Link", f'<{value}>; rel="license"; type="application/rsl+xml"'),
        (META, "robots"): lambda: meta(f'<meta name="{"robots" if agent == "*" else agent}" content="{value}">'),
        (META, "RSL"): lambda: meta(f'<link rel="license" type="application/rsl+xml" href="{value}">'),
    }
    in_place: dict[str, Callable[[], list[Said]]] = {
        ROBOTS_TXT: lambda: robots(f"User-agent: {agent}\n{signal}: {value}\nAllow: /"),
        HEADER: lambda: head(signal, value),
        META: lambda: meta(f'<meta name="{signal}" content="{value}">'),
        TDMREP: lambda: tdm(signal, value),
        OPERATOR: lambda: Heard([OfDomain("example.com")]).said(URL, URL, ""),
    }
    return forms.get((place, signal), in_place[place])()


def robots(text: str) -> list[Said]:
    return parse(text.encode(), OURS).said(URL)


def head(name: str, value: str) -> list[Said]:
    return said_in_head([(b"Server", b"x"), (name.encode(), value.encode())], OURS)


def meta(tag: str) -> list[Said]:
    return said_in_html(f"<!DOCTYPE html><html><head><title>A page</title>{tag}</head><body>".encode(), OURS)


def tdm(signal: str, value: str) -> list[Said]:
    reservation, policy = (value, "") if signal == "tdm-reservation" else ("1", f', "tdm-policy": "{value}"')
    return TdmRules(f'[{{"location": "/part/", "tdm-reservation": {reservation}{policy}}}]'.encode()).of(URL)


def actions(words: str) -> set[Action]:
    return {Action[word.upper()] for word in words.split()}


@pytest.mark.parametrize(("signal", "value", "place", "agents", "forbidden", "fetched"), MATRIX)
def test_each_signal(signal: str, value: str, place: str, agents: str, forbidden: str, fetched: str) -> None:
    for name, agent in AGENTS.items():
        names_agents = place == ROBOTS_TXT or signal == "robots"
        if name != "all" and (not names_agents or signal == "RSL"):
            continue
        found = [one for one in said(signal, value, place, agent) if one.signal == signal]
        heeded = name in agents.split()
        assert [(one.value, one.place) for one in found] == [(value, place)] * heeded
        assert from_text(as_text(found)) == found
        for allowed_to_fetch, expected in ((False, forbidden), (True, fetched)):
            verdict = decide(found, fetch_opted_out=allowed_to_fetch)
            assert {action for action in Action if verdict.forbids(action)} == (actions(expected) if heeded else set())
            assert all(value in verdict.reason(action) for action in verdict.forbidden)


def test_the_docs_have_the_same_table() -> None:
    rows: dict[tuple[str, str], tuple[set[str], set[Action], set[Action]]] = {}
    for line in DOCS.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 9 and cells[0].startswith("`") and re.match("`.*`$", cells[1]):
            no = {action for action, cell in zip(Action, cells[3:8], strict=True) if cell.startswith("no")}
            with_fetch = {action for action in Action if action.value in cells[8]}
            rows[cells[0].strip("`"), cells[1].strip("`")] = set(cells[2].split(", ")), no, with_fetch
    assert {(signal, place) for (signal, _), (places, _, _) in rows.items() for place in places} == {
        (signal, place) for signal, _, place, *_ in MATRIX
    }
    for signal, value, place, _, forbidden, fetched in MATRIX:
        places, no, with_fetch = rows[signal, value if (signal, value) in rows else "..."]
        known_before = place in {ROBOTS_TXT, TDMREP}
        assert place in places
        assert actions(forbidden) == {action for action in no if known_before or action is not Action.FETCH}
        assert actions(fetched) == {action for action in with_fetch if known_before or action is not Action.FETCH}


@pytest.mark.parametrize(("signal", "value", "place"), SILENT)
def test_permissions_and_what_is_malformed_say_nothing(signal: str, value: str, place: str) -> None:
    assert said(signal, value, place, "*") == []


def forbidden_by(found: Iterable[Said]) -> set[Action]:
    return set(decide(found).forbidden)


def test_the_stricter_of_contradictory_signals_wins() -> None:
    strict = head("TDM-Reservation", "1")
    lax = head("Content-Usage", "train-ai=y") + robots("User-agent: *\nContent-Signal: ai-train=yes")
    assert forbidden_by(strict + lax) == forbidden_by(lax + strict) == forbidden_by(strict) == actions(ENDS)
    assert forbidden_by(robots("User-agent: *\nContent-Signal: ai-train=yes, ai-train=no")) == actions(ALL)
    assert forbidden_by(said_in_html(b"<meta name=robots content='all,noai'><meta name=robots content=all>", OURS))
    # A group for us alone lifts what is said to all, of what it speaks of; not what training crawlers are told.
    ours = "User-agent: TestBot\nAllow: /\nContent-Signal: ai-train=yes\n"
    assert robots(f"User-agent: *\nContent-Signal: ai-train=no\n{ours}") == []
    assert robots(f"User-agent: *\nContent-Usage: train-ai=n\n{ours}")
    assert robots(f"{ours}User-agent: GPTBot\nDisallow: /\n")
    assert robots(f"Content-Signal: ai-train=no\n{ours}")


@pytest.mark.parametrize(
    ("lines", "closed", "open_"),
    [
        ("Content-Usage: /a/ train-ai=n", "/a/ /a/b?c", "/ /a /b/a/"),
        ("Content-Usage: train-ai=n\nContent-Usage: /ok/ train-ai=y", "/ /o", "/ok/ /ok/page"),
        ("Content-Usage: train-ai=n\nContent-Usage: /ok/ search=y\nContent-Usage: /bad/ (", "/ok/ /bad/", ""),
        ("Content-Usage: /same train-ai=y\nContent-Usage: /same train-ai=n", "/same", "/"),
        ("Content-Usage: /*.pdf$ train-ai=n", "/a.pdf", "/a.pdf?b /a.pdfs"),
        ("Content-Signal: /%7euser/ü ai-train=no", "/~user/%C3%BC", "/user/"),
        ("User-agent: GPTBot\nDisallow: /\nAllow: /open", "/ /ope /x", "/open /open/a"),
        ("User-agent: GPTBot\nDisallow: /a*b*c$\nUser-agent: CCBot\nDisallow: /d", "/abc /a/b/bc /d/e", "/abcd /ac /"),
        ("User-agent: GPTBot\nUser-agent: OtherBot\nDisallow: /x", "/x", "/y"),
        ("User-agent: Googlebot\nDisallow: /x", "", "/x /"),
        ("User-agent: GPTBot\nDisallow:", "", "/"),
    ],
)
def test_scopes_in_robots_txt(lines: str, closed: str, open_: str) -> None:
    rules = parse(f"User-agent: *\n{lines}\n".encode(), OURS)
    for paths, forbidden in ((closed, actions(ALL)), (open_, set())):
        for path in paths.split():
            assert forbidden_by(rules.said(f"http://example.com{path}")) == forbidden, path


def test_scope_of_tdmrep_rules() -> None:
    """The first rule that matches counts."""
    body = (
        b'[{"location": "/a/free/*.jpg", "tdm-reservation": 0}, {"location": "/a/", "tdm-reservation": 1}, '
        b'{"location": "/a/b/", "tdm-reservation": 0}, {"location": "/c$", "tdm-reservation": "1"}]'
    )
    rules = TdmRules(body)
    reserved = [path for path in ("/", "/a/", "/a/b/", "/a/free/x.jpg", "/c", "/cc") if rules.of("https://h" + path)]
    assert reserved == ["/a/", "/a/b/", "/c"]


def test_cloudflares_managed_file() -> None:
    text = (
        "# BEGIN Cloudflare Managed content\nUser-Agent: *\nContent-signal: search=yes,ai-train=no,use=reference\n"
        "Allow: /\n\nUser-agent: Amazonbot\nDisallow: /\n\nUser-agent: CCBot\nDisallow: /\n\n"
        "User-agent: GPTBot\nDisallow: /\n# END Cloudflare Managed Content\nUser-agent: *\nDisallow: /lp\n"
    )
    rules = parse(text.encode(), OURS)
    assert rules.allows(URL)
    assert not rules.allows("http://example.com/lp")
    assert as_text(rules.said(URL)) == (
        "robots.txt * / Content-Signal ai-train=no; robots.txt * / Content-Signal use=reference; "
        "robots.txt gptbot / AI-crawler disallow"
    )


def test_agents_in_x_robots_tag() -> None:
    value = (
        "noimageai, OtherBot: noarchive, unavailable_after: Friday, 25-Jun-10 15:00:00 PST, noai, TESTBOT: nofollow, "
        "max-snippet:20, noindex"
    )
    found = head("X-Robots-Tag", value)
    assert [(one.agent, one.value) for one in found] == [("*", "noimageai"), (OURS, "nofollow"), (OURS, "noindex")]


def test_a_long_line_keeps_what_forbids() -> None:
    licences = [Said("RSL", f"https://example.com/{'x' * 150}/{n}", HEADER) for n in range(20)]
    text = as_text([*licences, *head("TDM-Reservation", "1")])
    assert len(text) <= 1024
    assert forbidden_by(from_text(text)) == actions(ENDS)
    odd = Said("tdm-policy", "a; b %20 \n\u2028=", TDMREP, "/x y;%25*", "*")
    assert from_text(as_text([odd])) == [odd]

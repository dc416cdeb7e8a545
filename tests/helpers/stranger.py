"""Re-derives each fetch and each refusal of a live crawl from its archive and logs, as a stranger would.

Imports nothing of the project: warcio reads the archive, protego matches paths. ``python tests/helpers/stranger.py
OUTPUT PRODUCT-TOKEN [--requests JOBDIR/requests] [--opt-outs]`` says how many fetches and refusals follow from records,
and lists those that do not. Of documents that were fetched and are no pages the archive has nothing: that they were
allowed is told from the log of requests. Opt-outs from training are looked for where they are said to be obeyed.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from protego import Protego
from warcio.archiveiterator import ArchiveIterator

LIMIT = 500 * 1024
REDIRECTS = {301, 302, 303, 307, 308}
TRAINING = (
    "gptbot claudebot anthropic-ai google-extended applebot-extended ccbot meta-externalagent bytespider ai2bot "
    "ai2bot-dolma"
).split()
"""Crawlers for training, whose groups are obeyed though they are not addressed to this one (docs/opt-outs.md)."""

STRICT = {"ai-train": {"no"}, "ai-input": {"no"}, "use": {"immediate", "reference"}, "train-ai": {"n"}}
"""Values of uses against which nothing is fetched."""


class Exchange(NamedTuple):
    """A response of the archive."""

    url: str
    date: str
    digest: str
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    purpose: str
    about: dict[str, str]
    """What its metadata record says."""

    @property
    def is_page(self) -> bool:
        return not self.purpose


class Verdicts:
    """What follows from an archive, and what does not."""

    def __init__(self, output: Path, token: str, *, requests: Path | None = None, opt_outs: bool = False) -> None:
        self.token = token.lower()
        self.opt_outs = opt_outs
        self.exchanges = sorted(read_exchanges(output / "warc"), key=lambda one: one.date)
        self.problems: list[str] = []
        self.derived: Counter[str] = Counter()
        self._of_files: defaultdict[tuple[str, str], list[Exchange]] = defaultdict(list)
        self._by_place: defaultdict[tuple[str, str], list[Exchange]] = defaultdict(list)
        for one in self.exchanges:
            self._by_place[one.digest, one.date].append(one)
            if one.purpose:
                self._of_files[one.purpose, one.about.get("site", "")].append(one)
        indexed = Counter(
            (fields["digest"], fields["url"])
            for line in (output / "warc/index.cdxj").read_text().splitlines()
            for fields in [json.loads(line.split(" ", 2)[2])]
        )
        if indexed != Counter((one.digest, one.url) for one in self.exchanges):
            self.problems.append("the index has other records than the archive")
        self._fetches()
        for day in sorted(requests.glob("*.jsonl")) if requests is not None else []:
            for line in map(json.loads, day.read_text().splitlines()):
                self._request(line)
        for line in map(json.loads, (output / "failures.jsonl").read_text().splitlines()):
            self._refusal(line)

    def _fetches(self) -> None:
        for one in self.exchanges:
            if not (one.is_page or one.purpose in {"refusal", "opt-out"}):
                continue
            held = self.robots_at(site_of(one.url), one.date)
            stated = one.about.get("robots", "")
            if held is None:
                self.problems.append(f"{one.url} was fetched, and no robots.txt before that allows it")
            elif one.is_page and f"{held.digest} {held.date}" not in stated.split(", "):
                self.problems.append(f"{one.url} says {stated}, but {held.url} of {held.date} held")
            elif (rule := self.against(held, one.url)) is not None:
                self.problems.append(f"{one.url} was fetched, and {held.url} has {rule}")
            elif self.opt_outs and (said := self.signals_before(held, one.url, one.date)):
                self.problems.append(f"{one.url} was fetched, against {said}")
            elif self.opt_outs and one.is_page and (said := signals_of_page(one, self.token)):
                self.problems.append(f"{one.url} was kept, against {said}")
            else:
                self.derived["fetches"] += 1

    def _request(self, line: dict[str, Any]) -> None:
        """A request must be allowed by what was known when it was sent; those for robots.txt need not be."""
        if line["for"] == "robots.txt":
            return
        held = self.robots_at(site_of(line["url"]), line["time"])
        if held is None or self.against(held, line["url"]) is not None:
            self.problems.append(f"{line['url']} was asked for at {line['time']}, and that was not allowed")
        elif self.opt_outs and (said := self.signals_before(held, line["url"], line["time"])):
            self.problems.append(f"{line['url']} was asked for at {line['time']}, against {said}")
        else:
            self.derived["requests"] += 1

    def _refusal(self, line: dict[str, Any]) -> None:
        reason, url = line["reason"], line["url"] or line["id"]
        rule, _, target = str(line.get("rule", "")).partition(", for http")
        url = f"http{target}" if target else url  # of a document that led elsewhere it is that which is forbidden
        if reason not in {"robots", "opt_out", "http_401", "http_402", "http_403", "http_451"}:
            return
        found = self._by_place.get((line.get("digest"), line.get("time")), [])
        if len(found) != 1:
            self.problems.append(f"{url}: {reason} names {len(found)} records of the archive")
            return
        (record,) = found
        if reason == "robots":
            follows = self.against(record, url) is not None and rule.partition(": ")[2] in text_of(record.body)
        elif reason == "opt_out" and record.purpose == "robots.txt":
            follows = self.against(record, url) is None and bool(self.signals(record, url))
        elif reason == "opt_out" and record.purpose == "tdmrep.json":
            follows = bool(tdm_signals(record, url))
        elif reason == "opt_out":
            follows = bool(signals_of_page(record, self.token)) or "meta" in line["rule"]
        else:
            follows = reason == f"http_{record.status}"
        if follows:
            self.derived["refusals"] += 1
        else:
            self.problems.append(f"{url}: {reason} does not follow from {record.url} of {record.date}: {line['rule']}")

    def robots_at(self, site: str, date: str, hops: int = 0) -> Exchange | None:
        """The answer for a site's robots.txt that held at a time: the last but for failures; after redirects."""
        held = None
        for one in self._of_files.get(("robots.txt", site), []):
            if one.date > date:
                break
            other = leads_to(one)
            if other not in {None, site} and hops < 6:
                held = self.robots_at(str(other), date, hops + 1) or held
            elif one.status != 429 and one.status < 500:
                held = one
        return held

    def against(self, record: Exchange, url: str) -> str | None:
        """What of a robots.txt forbids a URL to the crawler; None where nothing does."""
        if not 200 <= record.status < 300:
            return None
        lines = rules_for(groups_of(record.body), self.token)
        return None if allows(lines, url) else "a line against it"

    def signals_before(self, held: Exchange, url: str, date: str) -> list[str]:
        files = self._of_files.get(("tdmrep.json", site_of(url)), [])
        of_files = [one for file in files if file.date < date for one in tdm_signals(file, url)]
        return self.signals(held, url) + of_files

    def signals(self, record: Exchange, url: str) -> list[str]:
        """Signals in a robots.txt against training, for a URL."""
        if not 200 <= record.status < 300:
            return []
        groups = groups_of(record.body)
        own = {use for use, _, _ in uses_of(groups.get(self.token, []), url)}
        said = []
        for agent in dict.fromkeys((self.token, "*", "", *TRAINING)):
            of_all = [one for one in uses_of(groups.get(agent, []), url) if agent != "*" or one[0] not in own]
            for use in {use for use, _, _ in of_all}:
                longest = max(length for name, length, _ in of_all if name == use)
                values = {value for name, length, value in of_all if (name, length) == (use, longest)}
                said += [f"{agent}: {use}={value}" for value in values & STRICT[use]]
        said += [f"{agent} is denied it" for agent in TRAINING if not allows(groups.get(agent, []), url)]
        return said


def uses_of(lines: list[tuple[str, str]], url: str) -> list[tuple[str, int, str]]:
    """The uses that lines of Content-Signal and Content-Usage speak of for a URL: use, length of the path, value."""
    found = []
    for name, value in lines:
        if name in {"content-signal", "content-usage"}:
            path, _, rest = value.partition(" ") if value.startswith("/") else ("/", "", value)
            if not allows([("disallow", path)], url) and (name != "content-usage" or is_dictionary(rest)):
                pairs = re.findall(r"([a-z-]+)\s*=\s*([a-z]+)", rest.lower())
                found += [(use, len(path), said) for use, said in pairs if use in STRICT]
    return found


def is_dictionary(value: str) -> bool:
    """Whether a field is a dictionary of tokens (RFC 9651, 3.2); a malformed one says nothing."""
    return all(re.fullmatch(r"\s*[a-z*][a-z0-9_.*-]*(=[a-z*]+)?\s*", member) for member in value.split(","))


def read_exchanges(folder: Path) -> Iterator[Exchange]:
    """The responses of an archive, each with its metadata; a revisit with the body of its original."""
    heads: list[tuple[str, Exchange]] = []
    about: dict[str, dict[str, str]] = {}
    bodies: dict[str, bytes] = {}
    for path in sorted(folder.glob("*.warc.gz*")):
        if "-text-" in path.name:
            continue
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                field = record.rec_headers.get_header
                if record.rec_type in {"response", "revisit"}:
                    body = record.content_stream().read()
                    digest = field("WARC-Payload-Digest")
                    if record.rec_type == "response":
                        bodies.setdefault(digest, body)
                    status = int(record.http_headers.get_statuscode())
                    of = field("WARC-Target-URI"), field("WARC-Date"), digest, status, record.http_headers.headers
                    one = Exchange(*of, body, field("Crawl4LLM-Purpose") or "", {})
                    heads.append((field("WARC-Record-ID"), one))
                elif record.rec_type == "metadata":
                    block = record.content_stream().read().decode()
                    fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
                    about[field("WARC-Concurrent-To")] = fields
    of_page: dict[str, str] = {}
    for identifier, one in reversed(heads):  # what is said of a page is said of the redirects before it
        told = about.get(identifier, of_page if not one.purpose else {})
        of_page = told if not one.purpose else of_page
        yield one._replace(about=told, body=one.body or bodies.get(one.digest, b""))


def leads_to(robots: Exchange) -> str | None:
    """The site to whose robots.txt one redirects; None where that is none."""
    location = dict(lower(robots.headers)).get("location", "") if robots.status in REDIRECTS else ""
    try:
        target = urlsplit(urljoin(robots.url, location))
        leads_somewhere = location and target.username is None and target.port != 0
    except ValueError:
        return None
    return f"{target.scheme}://{target.netloc}" if leads_somewhere and target.path == "/robots.txt" else None


def site_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def lower(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in headers]


def text_of(body: bytes) -> str:
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body[:LIMIT].decode("utf-16", "replace")
    return body[:LIMIT].decode("utf-8-sig", "replace")


def groups_of(body: bytes) -> dict[str, list[tuple[str, str]]]:
    """Lines of a robots.txt by product token (RFC 9309, 2.2.1); those of no group under an empty string."""
    groups: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    agents, named = [""], [""]
    in_head = is_named = False
    for line in re.split(r"\r\n|\r|\n", text_of(body)):
        name, colon, value = line.partition("#")[0].partition(":")
        name, value = name.strip().lower(), value.strip()
        if not colon:
            continue
        if name == "user-agent":
            agents = agents if in_head else []
            named = named if is_named else []
            for those in (agents, named):
                those.append(re.split(r"[\s/;(),]", value.lower() or "-")[0])
            in_head = is_named = True
            continue
        is_rule = name in {"allow", "disallow", "content-usage"}
        in_head, is_named = in_head and not is_rule, False
        for agent in agents if is_rule else named:
            groups[agent].append((name, value))
    return groups


def rules_for(groups: dict[str, list[tuple[str, str]]], token: str) -> list[tuple[str, str]]:
    return groups[token] if token in groups else groups.get("*", [])


def allows(lines: list[tuple[str, str]], url: str) -> bool:
    rules = "".join(f"{name}: {value}\n" for name, value in lines if name in {"allow", "disallow"})
    rules = re.sub("%(?![0-9A-Fa-f]{2})", "%25", rules)
    return bool(Protego.parse(f"User-agent: *\n{rules}").can_fetch(url, "x"))


def tdm_signals(record: Exchange, url: str) -> list[str]:
    """What tdmrep.json reserves of a URL: its first location that matches counts."""
    try:
        rules = json.loads(record.body) if record.status == 200 and len(record.body) <= LIMIT else []
    except (RecursionError, ValueError):
        return []
    for rule in rules if isinstance(rules, list) else []:
        if isinstance(rule, dict) and not allows([("disallow", str(rule.get("location")))], url):
            return [f"tdm-reservation of {rule['location']}"] if rule.get("tdm-reservation") in {1, "1"} else []
    return []


def signals_of_page(one: Exchange, token: str) -> list[str]:
    """Signals of a page's own head, and of its HTML, against its being kept for training."""
    said = []
    for name, value in ((name.lower(), value.lower()) for name, value in one.headers):
        agent = re.match(r"\s*([a-z0-9_-]+)\s*:", value) if name == "x-robots-tag" else None
        if agent and agent[1] not in {token, "robots"}:
            continue
        words = r"\b(noai|noarchive)\b" if name == "x-robots-tag" else ""
        of_uses = {
            "content-usage": r"\btrain-ai\s*=\s*n\b",
            "content-signal": r"\b(ai-(train|input)\s*=\s*no|use\s*=\s*(immediate|reference))\b",
        }
        words = of_uses.get(name, words)
        if name == "content-usage" and not is_dictionary(value):
            continue
        if (words and re.search(words, value)) or (name == "tdm-reservation" and value.strip() == "1"):
            said.append(f"{name}: {value}")
    head = one.body[: 1 << 16].lower().partition(b"</head")[0].decode("utf-8", "replace")
    for tag in re.findall(r"<meta\b[^>]*>", head):
        named = re.search(r"""name\s*=\s*["']?([\w-]+)""", tag)
        content = re.search(r"""content\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*))""", tag)
        text = "".join(filter(None, content.groups())) if content else ""
        if named and named[1] in {"robots", token} and re.search(r"\b(noai|noarchive)\b", text):
            said.append(tag)
        if named and named[1] == "tdm-reservation" and text.strip() == "1":
            said.append(tag)
    return said


def main(output: str, token: str, *options: str) -> int:
    requests = Path(options[options.index("--requests") + 1]) if "--requests" in options else None
    found = Verdicts(Path(output), token, requests=requests, opt_outs="--opt-outs" in options)
    for problem in found.problems:
        print(problem)
    of = ", ".join(f"{found.derived[what]} {what}" for what in ("fetches", "requests", "refusals"))
    print(f"{of} follow from the archive; {len(found.problems)} do not")
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""The texts that fill the web: main texts of the real pages in ../shared, with their scores, each used once.

A text is what trafilatura takes for the main text of a page, as blocks: headings, paragraphs, items of lists, code.
Its score is that of the benchmarks' fastText model on this text, so on the source and not on what a site makes of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from lxml import etree, html as lxml_html
from trafilatura import extract

from benchmarks.corpora import HtmlPart, html_parts, model
from crawl4llm.base.jobs import Told, run_jobs
from crawl4llm.base.processes import cores
from crawl4llm.base.whole_files import write_whole
from crawl4llm.scoring import FastTextScorer
from simulate.demo import LABEL

GOOD = 0.5
"""The score above which a text is useful."""
_WORDS = range(40, 20000)
"""Words of a text that is used: shorter ones are stubs."""
_LARGEST = 3_000_000
"""Bytes of a page that is looked at."""
_TITLE_LENGTH = 90


class Block(NamedTuple):
    """A piece of a text."""

    kind: str
    """``head``, ``p``, ``item`` or ``code``."""
    text: str


class Text(NamedTuple):
    """A text that fills one place of the web."""

    id: str
    title: str
    topic: str
    """Host that the text is from: a category, tag or module of whatever it fills."""
    score: float
    blocks: Sequence[Block]

    @property
    def good(self) -> bool:
        """Whether a crawl should find it."""
        return self.score > GOOD

    @property
    def words(self) -> list[str]:
        """Its words, without marks."""
        return " ".join(block.text for block in self.blocks).split()


def texts(folder: Path) -> list[Text]:
    """Return all usable texts in an order that depends on nothing but the texts; they are extracted once."""
    kept = folder / "texts.jsonl"
    if not kept.exists():
        found = {
            text.id: text
            for _, some in run_jobs(_of_part, html_parts(4 * cores()), cores(), Told(" parts", label="texts"))
            for text in some
        }
        ordered = sorted(found.values(), key=lambda text: hashlib.sha256(f"{text.id} order".encode()).digest())
        write_whole(kept, b"".join(json.dumps(text).encode() + b"\n" for text in ordered))
    return [_read(line) for line in kept.open(encoding="utf-8")]


def first_texts(number: int) -> list[Text]:
    """Return some usable texts of the first pages, which takes seconds."""
    found = {text.id: text for part in html_parts(1) for text in islice(_texts(part), number)}
    return list(found.values())[:number]


def _read(line: str) -> Text:
    key, title, topic, score, blocks = json.loads(line)
    return Text(key, title, topic, score, [Block(*block) for block in blocks])


def _of_part(part: HtmlPart) -> list[Text]:
    return list(_texts(part))


def _texts(part: HtmlPart) -> Iterator[Text]:
    scorer = FastTextScorer(model(), LABEL)
    for page in part.pages():
        if page.html and len(page.html) < _LARGEST and (blocks := _blocks(page.html)):
            text = "\n".join(block.text for block in blocks)
            if len(text.split()) in _WORDS:
                key = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:12]
                topic = (urlsplit(page.url).hostname or "").removeprefix("www.")
                yield Text(key, _title(page.html, blocks), topic, round(scorer.score([text])[0], 4), blocks)


def _blocks(page: bytes) -> list[Block]:
    """Return the main text of a page."""
    try:
        found = extract(page, output_format="xml", include_comments=False, include_tables=False, fast=True)
        main = etree.fromstring(found.encode()).find("main") if found else None
    except etree.XMLSyntaxError:  # trafilatura lets characters through that XML does not have
        return []
    if main is None:
        return []
    kinds = {"head": "head", "p": "p", "quote": "p", "item": "item", "code": "code"}
    blocks = []
    for element in main.iter(*kinds):
        if any(ancestor.tag in kinds for ancestor in element.iterancestors()):
            continue  # its text is that of the block around it
        text = "".join(element.itertext())
        kind = kinds[element.tag]
        text = text.strip("\n") if kind == "code" else " ".join(text.split())
        if text.strip():
            blocks.append(Block(kind, text))
    return blocks


def _title(page: bytes, blocks: Sequence[Block]) -> str:
    """Return a title of letters, digits and plain marks."""
    try:
        title = lxml_html.fromstring(page).findtext(".//title") or ""
    except (etree.LxmlError, ValueError):
        title = ""
    for mark in (" | ", " - ", " :: ", " · ", "\N{EN DASH}", "\N{EM DASH}"):
        title = title.split(mark)[0]
    words = [
        "".join(letter for letter in word if letter.isascii() and (letter.isalnum() or letter in "-'.")).strip("-'.")
        for word in (title.split() or blocks[0].text.split()[:10])
    ]
    clean = " ".join(word for word in words if word)[:_TITLE_LENGTH].strip("-'. ")
    return clean[:1].upper() + clean[1:] if clean else "Untitled"

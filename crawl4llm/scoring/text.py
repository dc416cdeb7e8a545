"""Text extraction: the main text of an HTML page, without navigation and boilerplate; and its title."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import cache
from html import unescape
from typing import Any, Final
from unicodedata import normalize

from crawl4llm.base.html_bounds import bounded
from crawl4llm.scoring.choosing import better_text, is_little

Extractor = Callable[[str], str]


@cache
def _prepared() -> Any:
    """Import trafilatura, when it is first needed, and return it."""
    import trafilatura  # slow: 300 ms

    from crawl4llm.scoring.faster_trafilatura import make_faster  # with trafilatura

    # Both log several lines a page; pages without text are counted instead.
    for noisy in ("trafilatura", "htmldate"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    make_faster()
    return trafilatura


_RECIPE: Final = {"fast": True, "include_comments": False, "include_tables": True}


def _trafilatura(html: str) -> str:
    return _prepared().extract(html, **_RECIPE) or ""


def _resiliparse(html: str, *, comments: bool = False) -> str:
    from resiliparse.extract.html2text import extract_plain_text  # few crawls need it

    return str(extract_plain_text(html, main_content=True, alt_texts=False, comments=comments))


def _both(html: str) -> str:
    document = _prepared().bare_extraction(html, **_RECIPE)
    text = other = _resiliparse(html)
    if document is not None:
        own = normalize("NFC", document.text).strip()  # as trafilatura's extract() does
        text = better_text(own, other, is_whole_page=_is_whole_page(document.body))
    if not is_little(text):
        return text
    comments = _resiliparse(html, comments=True)
    return comments if is_little(text, beside=comments) else text


def _is_whole_page(body: Any) -> bool:
    """Return whether trafilatura has found no main text and gives the whole page: one paragraph, a text a line
    (``trafilatura.baseline``)."""
    return len(body) == 1 and len(body[0]) == 0 and "\n" in (body[0].text or "")


EXTRACTORS: dict[str, Extractor] = {"trafilatura": _trafilatura, "resiliparse": _resiliparse, "both": _both}
"""Extractors by their TEXT_EXTRACTOR name. DCLM used ``resiliparse`` (Li et al. 2024); ``both`` takes trafilatura's
text, or resiliparse's if trafilatura's is bad (:mod:`crawl4llm.scoring.choosing`)."""
_PACKAGES: Final = {"both": ("trafilatura", "resiliparse")}
_BOTH_RULE: Final = 2
"""Version of the rule of ``both``. A change of the rule raises it, so that the score cache does not mix scores."""


def load_extractor(name: str) -> Extractor:
    """Return an extractor, loaded by extracting a small page."""
    extractor = EXTRACTORS[name]
    extractor("<html><body><p>one page</p></body></html>")
    return extractor


def extractor_identity(name: str) -> list[str | int]:
    """Return the values that determine the texts of an extractor: its name, the versions of its packages, and its own
    rule."""
    from importlib.metadata import version  # slow to import: 30 ms

    rules = [_BOTH_RULE] if name == "both" else []
    return [name, *map(version, _PACKAGES.get(name, (name,))), *rules]


def extract_text(html: bytes, extractor: Extractor) -> str:
    """Return the main text of a page given in UTF-8, as far as it is read; empty if it has none."""
    return extractor(bounded(html).decode("utf-8", errors="replace"))


_TITLE: Final = re.compile(rb"<title(?=[\s>])", re.IGNORECASE)
_TITLE_END: Final = re.compile(rb"</title", re.IGNORECASE)
_LONGEST_TITLE: Final = 1 << 16


def title_of(html: bytes) -> str:
    """Return the title of a page given in UTF-8, on one line; empty if it has none."""
    tag = _TITLE.search(html)
    begin = html.find(b">", tag.end()) + 1 if tag else 0
    end = _TITLE_END.search(html, begin, begin + _LONGEST_TITLE) if begin else None
    text = html[begin : end.start()] if end else b""
    return " ".join(unescape(text.decode("utf-8", "replace")).split())


_BLANK, _OTHER = b"\0", b"\1"
_CLASSES: Final = b"".join(_BLANK if chr(byte) in " \n\r\t\v\f\0" else _OTHER for byte in range(256))


def count_tokens(text: str) -> int:
    """Count the runs of bytes between blanks, which are words to fastText (its ``Dictionary::readWord``)."""
    return (_BLANK + text.encode("utf-8", "replace").translate(_CLASSES)).count(_BLANK + _OTHER)

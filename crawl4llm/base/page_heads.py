"""What the head of an HTML page says of the page: its canonical URL, the software that made it, its translations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from crawl4llm.base.html_tree import HtmlTree
from crawl4llm.base.urls import BaseUrl

_MOST_ELEMENTS: Final = 1000
"""Elements of a head that are looked at."""
_LONGEST: Final = 8192
"""Characters of a reference that is read."""
_LONGEST_NAME: Final = 200
_MOST_ALTERNATES: Final = 500


class PageHead(NamedTuple):
    """What a page says of itself. Nothing of it needs be true."""

    canonical: str = ""
    """The normalised URL that it gives as its canonical one (RFC 6596), its own too; empty if there is none, or
    different ones."""
    generator: str = ""
    """What its first generator meta names (HTML Standard, 4.2.5.1), on one line, 200 characters at most."""
    alternates: tuple[tuple[str, str], ...] = ()
    """Its translations, itself too: languages in lower case, as ``hreflang`` gives them, with normalised URLs; 500 at
    most."""


NO_HEAD: Final = PageHead()


def page_head(page: HtmlTree, url: str, charset: str = "utf-8") -> PageHead:
    """Return what the head of a page says. ``charset``: the one in which the page came. References of more than 8,192
    characters are left out."""
    elements = list(_elements(page))
    base = next((attributes["href"] for tag, attributes in elements if tag == "base" and attributes.get("href")), None)
    resolve = BaseUrl(url, charset).resolve
    if base and len(base) <= _LONGEST and (start := resolve(base)):
        resolve = BaseUrl(start, charset).resolve
    generators = (attributes for tag, attributes in elements if attributes.get("name", "").lower() == "generator")
    generator = next((" ".join(attributes.get("content", "").split()) for attributes in generators), "")
    canonicals: set[str | None] = set()
    alternates: list[tuple[str, str]] = []
    for tag, attributes in elements:
        reference = attributes.get("href", "")
        if tag != "link" or not 0 < len(reference) <= _LONGEST:
            continue
        relations = attributes.get("rel", "").lower().split()
        language = attributes.get("hreflang", "").strip().lower()
        if "canonical" in relations:
            canonicals.add(resolve(reference))
        elif "alternate" in relations and language and len(alternates) < _MOST_ALTERNATES:
            alternates.append((language[:_LONGEST_NAME], resolve(reference) or ""))
    canonical = canonicals.pop() if len(canonicals) == 1 else None
    return PageHead(canonical or "", generator[:_LONGEST_NAME], tuple(one for one in alternates if one[1]))


def _elements(page: HtmlTree) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield names and attributes of the head's elements."""
    head = page.head
    if head is not None:
        for node in islice(head.iter(), _MOST_ELEMENTS):
            yield node.tag or "", {name: value or "" for name, value in node.attributes.items()}

"""The head of an HTML page: its canonical URL, the software that made it, its translations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, NamedTuple

from crawl4llm.base.html_tree import HtmlTree
from crawl4llm.base.software_marks import Mark, marks_of, marks_of_cookies
from crawl4llm.base.urls import BaseUrl

_MOST_ELEMENTS: Final = 1000
"""Most elements of a head that are read."""
_LONGEST: Final = 8192
"""Most characters of a reference that is read."""
_LONGEST_NAME: Final = 200
_TAGS: Final = frozenset(("base", "link", "meta"))
_MOST_ALTERNATES: Final = 500


class PageHead(NamedTuple):
    """Statements of a page about itself, true or not."""

    canonical: str = ""
    """The normalised canonical URL that it names (RFC 6596), which may be its own; empty if it names no URL or
    several."""
    generator: str = ""
    """The content of its first generator meta (HTML Standard, 4.2.5.1), on one line, at most 200 characters."""
    alternates: tuple[tuple[str, str], ...] = ()
    """Its translations, itself included: languages in lower case, as in ``hreflang``, with normalised URLs; at most
    500."""
    marks: tuple[Mark, ...] = ()
    """Marks of the software that made it: at most 12, and those of its cookies."""


NO_HEAD: Final = PageHead()


def page_head(page: HtmlTree, url: str, charset: str = "utf-8") -> PageHead:
    """Return the head of a page. ``charset``: the one in which the page came. References of more than 8,192 characters
    are left out."""
    base, generator = "", ""
    canonicals: dict[str, None] = {}
    translations: list[tuple[str, str]] = []
    for node in () if (head := page.head) is None else islice(head.iter(), _MOST_ELEMENTS):
        if (tag := node.tag) not in _TAGS:
            continue
        attributes = node.attributes
        if tag == "meta":
            if not generator and (attributes.get("name") or "").lower() == "generator":
                generator = " ".join((attributes.get("content") or "")[:_LONGEST].split())[:_LONGEST_NAME]
            continue
        reference = attributes.get("href") or ""
        if not 0 < len(reference) <= _LONGEST:
            continue
        if tag == "base":
            base = base or reference
            continue
        relations = (attributes.get("rel") or "").lower()
        if "canonical" in relations and "canonical" in relations.split():
            canonicals[reference] = None
        elif "alternate" in relations and (language := attributes.get("hreflang")) and "alternate" in relations.split():
            translations.append((language.strip().lower()[:_LONGEST_NAME], reference))

    def resolved(reference: str) -> str | None:
        """Resolve a reference that may be a mark, of which there are few."""
        return _resolve(url, charset, base)(reference)

    marks = marks_of(page, url, generator, resolved)
    if not (canonicals or translations):
        return PageHead(generator=generator, marks=marks) if generator or marks else NO_HEAD
    resolve = _resolve(url, charset, base)
    urls = {resolve(reference) for reference in canonicals}
    canonical = urls.pop() if len(urls) == 1 else None
    named = ((language, resolve(reference) or "") for language, reference in translations[:_MOST_ALTERNATES])
    return PageHead(canonical or "", generator, tuple(one for one in named if all(one)), marks)


def _resolve(url: str, charset: str, base: str) -> Callable[[str], str | None]:
    """Return a function that resolves the references of a page."""
    page = BaseUrl(url, charset)
    start = page.resolve(base) if base else None
    return (BaseUrl(start, charset) if start else page).resolve


def with_cookies(head: PageHead, headers: Iterable[tuple[bytes, bytes]]) -> PageHead:
    """Return a head with the marks of the cookies in the header fields of the page's answer added."""
    cookies = marks_of_cookies(headers)
    return head._replace(marks=(*head.marks, *cookies)) if cookies else head

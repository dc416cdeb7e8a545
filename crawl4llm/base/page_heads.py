"""What the head of an HTML page says of the page: its canonical URL, the software that made it, its translations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, NamedTuple

from crawl4llm.base.html_tree import HtmlTree
from crawl4llm.base.software_marks import Mark, marks_of, marks_of_cookies
from crawl4llm.base.urls import BaseUrl

_MOST_ELEMENTS: Final = 1000
"""Elements of a head that are looked at."""
_LONGEST: Final = 8192
"""Characters of a reference that is read."""
_LONGEST_NAME: Final = 200
_TAGS: Final = frozenset(("base", "link", "meta"))
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
    marks: tuple[Mark, ...] = ()
    """Marks of the software that made it; 12 at most, and those of its cookies."""


NO_HEAD: Final = PageHead()


def page_head(page: HtmlTree, url: str, charset: str = "utf-8") -> PageHead:
    """Return what the head of a page says. ``charset``: the one in which the page came. References of more than 8,192
    characters are left out."""
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
        """Resolve one of the few references that may be marks."""
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
    """Return what resolves the references of a page."""
    page = BaseUrl(url, charset)
    start = page.resolve(base) if base else None
    return (BaseUrl(start, charset) if start else page).resolve


def with_cookies(head: PageHead, headers: Iterable[tuple[bytes, bytes]]) -> PageHead:
    """Return a head with the marks of the cookies that came in the header fields of the page's answer."""
    cookies = marks_of_cookies(headers)
    return head._replace(marks=(*head.marks, *cookies)) if cookies else head

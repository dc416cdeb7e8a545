"""The parts of a crawl in the add-on: they judge requests and fetched pages."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from scrapy import Request
from scrapy.http import HtmlResponse

from crawl4llm.addon.meta import ASKED, INFLUENCE, KNOWN, LEADING_NOWHERE, Found, found
from crawl4llm.base.errors import InputError
from crawl4llm.base.html_tree import HtmlTree, html_links
from crawl4llm.base.page_heads import page_head, with_cookies
from crawl4llm.base.pages import HeaderFields, Link
from crawl4llm.base.urls import normalise_url
from crawl4llm.crawl import LiveCorpus
from crawl4llm.frontier import Entry, Outcome
from crawl4llm.options import Options
from crawl4llm.parts import Part, Rated, Refusal, open_parts
from crawl4llm.policies import Candidate
from crawl4llm.scoring import RatedText

logger = logging.getLogger(__name__)


@dataclass
class ReadPage:
    """A response, as the parts may ask about it."""

    url: str
    html: bytes | None
    """In UTF-8; None if it is no HTML."""
    charset: str
    """The one in which it came."""
    noindex: bool
    headers: HeaderFields = ()
    """Of the response."""
    tree: HtmlTree | None = None
    """Of the HTML, if a part looks at it."""


class RequestParts:
    """Asks the parts that have no leases (:mod:`crawl4llm.parts`). A request that a callback makes is a link, a start
    request is a seed, and one that follows a redirect is asked about as a redirect. One that is tried again was asked
    about before: only block lists may have changed.

    Every method raises InputError, in one line that names the part, for an error that a part raises.
    """

    def __init__(self, options: Options) -> None:
        """Raise InputError, also for a part that sets documents aside: :mod:`~crawl4llm.addon.request_budgets` does
        that for URL_BUDGET, and there is no other way to."""
        parts = open_parts(replace(options, url_budget=0))
        for part in parts:
            if type(part).lease is not Part.lease or part.shares is not None:
                kind = type(part)
                raise InputError(
                    f"CRAWL_PARTS: {kind.__module__}.{kind.__qualname__} sets documents aside or chooses by class, "
                    "which the add-on cannot do; leave it out"
                )
        for meet in parts.having("meet"):
            meet(LiveCorpus())
        self.counts: Counter[str] = Counter()
        """The parts' figures."""
        self.needs = parts.needs()
        self.identity = parts.identity()
        self._parts = parts = parts.begun(self.counts)
        self._follows, self._admits = parts.having("follows"), parts.having("admits")
        self._redirects, self._seeds, self._blocks = (parts.having(hook) for hook in ("redirects", "seeds", "blocks"))
        self._rated, self._crawled, self._ends = (parts.having(hook) for hook in ("rated", "crawled", "finished"))
        self._leads, self._answering = parts.having("leads"), parts.answering

    def publish(self, output: Path) -> None:
        """Write lists and rules into the output directory. Raises InputError."""
        for publish in self._parts.having("publish"):
            publish(output, fsync=False)

    # -- requests -------------------------------------------------------------------------------------------------

    def follows(self, request: Request) -> bool:
        """Return whether the link that a request is may be followed; else it is counted, and another link may be."""
        origin = found(request)
        if origin.page is None or ASKED in request.meta:
            return True
        url = normalise_url(request.url)
        links = [Link(request.url, url, "", boilerplate=False)]
        with self._named():
            for follows in self._follows:
                links = follows(Entry(origin.page, origin.page, origin.influence, origin.depth - 1, None), links)
        return bool(links)

    def refusal(self, request: Request) -> Refusal | None:
        """Return why a request is dropped; it is counted."""
        refusal = self.blocked(request)
        with self._named():
            refusal = refusal or next(filter(None, self._refusals(request, found(request))), None)
        if refusal is not None:
            self.counts[f"{Outcome.DROPPED.value}/{refusal.reason}"] += 1
            if refusal.counted:
                self.counts[refusal.counted] += 1
        return refusal

    def _refusals(self, request: Request, origin: Found) -> Iterator[Refusal | None]:
        url, first = normalise_url(request.url), request.meta.get(ASKED)
        if first is not None and first != url:
            source = Entry(first, first, origin.influence, origin.depth, origin.page)
            yield from (redirects(source, url) for redirects in self._redirects)
        if first is not None:
            return
        request.meta[ASKED] = url
        if origin.page is None:
            yield from (refuses(url) for refuses in self._seeds)
        else:
            self.counts["links/new"] += 1
            candidate = Candidate(url, request.url, origin.depth, origin.page)
            yield from (admits(candidate) for admits in self._admits)

    def blocked(self, request: Request) -> Refusal | None:
        """Return why nothing is sent to a request's domain, whatever it is for."""
        with self._named():
            return next(filter(None, (blocks(request.url) for blocks in self._blocks)), None)

    # -- known pages ----------------------------------------------------------------------------------------------

    def is_known(self, request: Request) -> bool:
        """Return whether a part has the page of a request, so that nothing is sent."""
        if self._answering is None or request.method != "GET":
            return False
        with self._named():
            return self._answering.answers(normalise_url(request.url)) is not None

    def known(self, request: Request) -> HtmlResponse:
        """Return a response with the links of a known page and nothing else. The request's meta gets its influence
        score, and says which of the links are not to be followed."""
        assert self._answering is not None
        with self._named():
            page, influence, refusal = self._answering.answer(normalise_url(request.url))
        links = page.outlinks or []
        if not page.follows:
            self.counts["links/nofollow"] += len(links)
            links = []
        html = f"<!DOCTYPE html><title></title>{''.join(map(_element, links))}".encode("utf-8", "replace")
        read = ReadPage(request.url, html, "utf-8", noindex=False, tree=HtmlTree(html))
        rated = Rated(influence, dropped=refusal)
        rated.key, rated.url = page.key, request.url
        request.meta.update({INFLUENCE: influence, KNOWN: refusal, LEADING_NOWHERE: self.leading_nowhere(rated, read)})
        return HtmlResponse(request.url, body=html, encoding="utf-8", flags=["known"], request=request)

    # -- pages ----------------------------------------------------------------------------------------------------

    def rated(self, place: int, influence: float | None, rating: RatedText | None, read: ReadPage) -> Rated:
        """Let the parts see a page; ``place``: its place in the crawl, from 0. ``rating``: the scorer's result for its
        HTML."""
        page = Rated(influence, *(rating[2:] if rating else ()))
        page.key, page.url, page.noindex = normalise_url(read.url), read.url, read.noindex
        if (self._leads or self._crawled) and read.html is not None:
            read.tree = HtmlTree(read.html)
            page.head = with_cookies(page_head(read.tree, read.url, read.charset), read.headers)
        with self._named():
            for see in self._rated:
                see(place, page)
        return page

    def leading_nowhere(self, page: Rated, read: ReadPage) -> frozenset[str]:
        """Return the document keys to which a page says that its links are not to be followed; all such links are
        counted, whatever requests its callback makes."""
        if read.tree is None:
            return frozenset()
        links: Sequence[Link] = [
            Link(link.url, link.url, *link[1:]) for link in html_links(read.tree, read.url, read.charset)
        ]
        found = frozenset(link.url for link in links)
        with self._named():
            for leads in self._leads:
                links = leads(page, links)
        return found.difference(link.url for link in links)

    def crawled(self, request: Request, page: Rated) -> str | None:
        """Tell the parts of a page that is archived; return why the crawl is to end, if a part wants it to."""
        url, origin = normalise_url(request.url), found(request)
        entry = Entry(url, url, origin.influence, origin.depth, origin.page)
        with self._named():
            for crawled in self._crawled:
                crawled(entry, page)
            return next((reason for end in self._ends if (reason := end()) is not None), None)

    def figures(self, crawl: Mapping[str, float]) -> dict[str, float]:
        """Return the parts' figures, by those of the ``crawl``, and log their lines of a summary."""
        figures: dict[str, float | None] = {**self.counts, **crawl}
        with self._named():
            for more in self._parts.having("figures"):
                figures.update(more(figures))
            for lines in self._parts.having("lines"):
                for line in lines(figures):
                    logger.info("%s", " ".join(line.split()))
        return {key: value for key, value in figures.items() if value is not None and key not in crawl}

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            logger.exception("Cannot go on")
            raise InputError(self._parts.whose(error)) from None


def _element(link: Link) -> str:
    """Return a link as HTML."""
    told = {"href": link.url, "rel": link.rel, "hreflang": link.language}
    attributes = "".join(f' {name}="{escape(value)}"' for name, value in told.items() if value)
    return f"<a{attributes}>{escape(link.anchor)}</a>"

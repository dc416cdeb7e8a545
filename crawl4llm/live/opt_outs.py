"""Opt-outs in a live crawl: what a site has said of a page before the fetch, what the page says, and what that ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawl4llm.base.errors import NoPage
from crawl4llm.base.reasons import OPT_OUT
from crawl4llm.live.evidence import of_target, why
from crawl4llm.live.identity import crawler_name
from crawl4llm.options import read_options
from crawl4llm.optouts.decision import Verdict, decide
from crawl4llm.optouts.head_fields import said_in_head
from crawl4llm.optouts.html_meta import said_in_html
from crawl4llm.optouts.table import TDMREP, Action

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from scrapy import Request
    from scrapy.settings import BaseSettings

    from crawl4llm.base.pages import HeaderFields
    from crawl4llm.optouts.said import Said

    AskSite = Callable[[], Awaitable[tuple[list[Said], str | None]]]
    """Returns what a site's tdmrep.json says of a page, and its record in the archive."""

_SAID, _SOURCES, _ASK = "crawl4llm_said", "crawl4llm_said_by", "crawl4llm_ask_site"


class OptedOut(NoPage):
    """A document that its site or its own head keeps from being fetched, or from being used; it is dropped."""

    def __init__(self, request: Request, verdict: Verdict, action: Action, sources: Mapping[str, str | None]) -> None:
        """``action`` is what is forbidden, by the ``verdict``; ``sources``: records of the archive by the place of what
        they say."""
        self.rule = of_target(verdict.reason(action), request)
        place = verdict.forbidden[action].place
        because = why(self.rule, sources[place]) if place in sources else None
        super().__init__(f"{request.url}: {self.rule}", OPT_OUT, wanted=False, why=because)
        self.verdict, self.action = verdict, action


class OptOuts:
    """Judges documents by the table of opt-outs, for the crawler of the settings and by OPT_OUT_FETCH."""

    def __init__(self, settings: BaseSettings) -> None:
        self._crawler = crawler_name(settings)
        self._fetch_opted_out = read_options(settings).opt_out_fetch

    def check_site(
        self, request: Request, said: Sequence[Said], sources: Mapping[str, str | None], ask: AskSite
    ) -> None:
        """Note with a request what its site says of the document, and by which records. Raises OptedOut if it may not
        be fetched. ``ask``: asks the site for tdmrep.json, if it was not asked before."""
        request.meta[_SAID], request.meta[_SOURCES], request.meta[_ASK] = said, sources, ask
        verdict = decide(said, fetch_opted_out=self._fetch_opted_out)
        if verdict.forbids(Action.FETCH):
            raise OptedOut(request, verdict, Action.FETCH, sources)

    async def of_page(self, request: Request, headers: HeaderFields, html: bytes) -> Verdict:
        """Return the verdict of site and page on the page that a request was answered with; ``html`` in UTF-8.

        If nothing known so far forbids to keep the page, it waits until the site has been asked for tdmrep.json. Raises
        OptedOut if the page may not be archived, and the errors of that request.
        """
        of_page, of_site = said_of_page(self._crawler, headers, html), request.meta.get(_SAID, ())
        verdict = self._judged(request, [*of_site, *of_page])
        if (ask := request.meta.get(_ASK)) is None:
            return verdict
        of_tdm, source = await ask()
        request.meta[_SOURCES] = {**request.meta[_SOURCES], TDMREP: source}
        of_robots = [one for one in of_site if one.place != TDMREP]
        if not of_tdm and len(of_robots) == len(of_site):
            return verdict
        return self._judged(request, [*of_robots, *of_tdm, *of_page])

    def _judged(self, request: Request, said: Sequence[Said]) -> Verdict:
        verdict = decide(said, fetch_opted_out=self._fetch_opted_out)
        if verdict.forbids(Action.ARCHIVE):
            raise OptedOut(request, verdict, Action.ARCHIVE, request.meta.get(_SOURCES, {}))
        return verdict


def said_of_page(crawler: str, headers: HeaderFields, html: bytes) -> list[Said]:
    """Return what the head of a response and that of its HTML, in UTF-8, say to the crawler of this name."""
    return [*said_in_head(headers, crawler), *said_in_html(html, crawler)]

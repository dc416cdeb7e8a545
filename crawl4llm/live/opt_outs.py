"""Opt-outs in a live crawl: signals of a site before the fetch, signals of the page, and their consequences."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from scrapy import Request
from scrapy.settings import BaseSettings

from crawl4llm.base.errors import NoPage
from crawl4llm.base.reasons import OPT_OUT
from crawl4llm.live.capturing import of_target, why
from crawl4llm.live.identity import crawler_name
from crawl4llm.live.reading import OfPages
from crawl4llm.options import read_options
from crawl4llm.optouts import TDMREP, Action, Said, Verdict, decide

AskSite = Callable[[], Awaitable[tuple[list[Said], str | None]]]
"""Returns the rules of a site's tdmrep.json for a page, and its record in the archive."""

_SAID, _SOURCES, _ASK = "crawl4llm_said", "crawl4llm_said_by", "crawl4llm_ask_site"


class OptedOut(NoPage):
    """A document that its site or its own head keeps from being fetched, or from being used; it is dropped."""

    def __init__(self, request: Request, verdict: Verdict, action: Action, sources: Mapping[str, str | None]) -> None:
        """``verdict`` forbids ``action``. ``sources``: records of the archive, by the place of the signals in them."""
        self.rule = of_target(verdict.reason(action), request)
        place = verdict.forbidden[action].place
        because = why(self.rule, sources[place]) if place in sources else None
        super().__init__(f"{request.url}: {self.rule}", OPT_OUT, wanted=False, why=because)
        self.verdict, self.action = verdict, action


class OptOuts:
    """Judges documents by the table of opt-outs, for the crawler of the settings and by OPT_OUT_FETCH."""

    def __init__(self, settings: BaseSettings) -> None:
        self.of_pages = OfPages(crawler_name(settings), read_options(settings).opt_out_fetch)
        """The facts that processes need in order to read pages."""

    def check_site(
        self, request: Request, said: Sequence[Said], sources: Mapping[str, str | None], ask: AskSite | None
    ) -> None:
        """Attach to a request its site's signals about the document, and their records. Raises OptedOut if it may not
        be fetched. ``ask``: asks the site for tdmrep.json; None if it was asked before."""
        request.meta[_SAID], request.meta[_SOURCES], request.meta[_ASK] = said, sources, ask
        verdict = decide(said, fetch_opted_out=self.of_pages.fetched)
        if verdict.forbids(Action.FETCH):
            raise OptedOut(request, verdict, Action.FETCH, sources)

    def asks_site(self, request: Request) -> bool:
        """Return whether the site is to be asked for tdmrep.json before its page is kept."""
        return request.meta.get(_ASK) is not None

    async def ask_site(self, request: Request) -> None:
        """Request the site's tdmrep.json, and record its rules. Raises the errors of that request."""
        of_tdm, source = await request.meta.pop(_ASK)()
        request.meta[_SOURCES] = {**request.meta[_SOURCES], TDMREP: source}
        request.meta[_SAID] = [*(one for one in request.meta[_SAID] if one.place != TDMREP), *of_tdm]

    def verdict(self, request: Request, *of_page: Said) -> Verdict:
        """Return the verdict on the page in a request's answer, by the signals of its site and of the page. Raises
        OptedOut if the page may not be archived."""
        verdict = decide([*request.meta.get(_SAID, ()), *of_page], fetch_opted_out=self.of_pages.fetched)
        if verdict.forbids(Action.ARCHIVE):
            raise OptedOut(request, verdict, Action.ARCHIVE, request.meta.get(_SOURCES, {}))
        return verdict

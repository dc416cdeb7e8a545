"""Rates pages that come as HTML, as a live crawl has them, in worker processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from crawl4llm.scoring.rating import PageRater, RatedText, Rating, rate_text
from crawl4llm.scoring.workers import PageWorkers


@dataclass(frozen=True, order=True)
class HtmlPage:
    """A page to rate; logs show it without its HTML."""

    url: str
    html: bytes = field(repr=False)
    """In UTF-8."""


def influence(rater: PageRater, page: HtmlPage) -> Rating:
    """The influence score of a page's main text; 0 with the reason ``no_text`` where it has none."""
    return rate_text(rater.scorer, rater.extract(page.html), page.url)


def influence_and_text(rater: PageRater, page: HtmlPage) -> RatedText:
    """The influence score of a page's main text, and the text."""
    text = rater.extract(page.html)
    return RatedText(*rate_text(rater.scorer, text, page.url), text)


def influence_task(*, text: bool) -> Callable[[PageRater, HtmlPage], Rating | RatedText]:
    """The task that gives the influence score of a page, and with ``text`` its main text."""
    return influence_and_text if text else influence


class HtmlWorkers:
    """Worker processes that rate pages one by one, as they come in; arguments as for PageWorkers.

    With ``text`` they give the pages' main text, too.
    """

    def __init__(self, rater: PageRater, processes: int, time_limit: float, *, text: bool = False) -> None:
        self._workers = PageWorkers(rater, processes, time_limit)
        self._task = influence_task(text=text)

    def start(self) -> None:
        """Start the processes."""
        self._workers.start()

    def close(self) -> None:
        """Stop the processes, whatever they are at."""
        self._workers.close()

    async def rate(self, page: HtmlPage) -> Rating | RatedText:
        """The influence score of a page, or the reason why it has none: ``timeout``, ``killed``, ``error``.

        Raises InputError where the scorer gives no finite number.
        """
        (rating,) = await self._workers.run(self._task, [page])
        return rating

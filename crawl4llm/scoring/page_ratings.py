"""How fetched pages get their influence scores: looked up by their keys, or by the HTML that they came with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crawl4llm.base.pages import PageRecord
from crawl4llm.scoring import rating
from crawl4llm.scoring.html_rating import HtmlPage, influence_task
from crawl4llm.scoring.rating import PageRater, RatedText, Rating
from crawl4llm.scoring.workers import PageWorkers


async def rate_by_key(
    workers: PageWorkers[PageRater], pages: Sequence[PageRecord], *, text: bool = False
) -> list[Rating | RatedText]:
    """Scores of pages that the workers look up in the corpus; with ``text``, and their main text."""
    task: Callable[[PageRater, str], Rating | RatedText] = rating.influence_and_text if text else rating.influence
    return await workers.run(task, [page.key for page in pages])


async def rate_by_html(
    workers: PageWorkers[PageRater], pages: Sequence[PageRecord], *, text: bool = False
) -> list[Rating | RatedText]:
    """Scores of pages as they came; with ``text``, and their main text."""
    return await workers.run(influence_task(text=text), [HtmlPage(page.key, page.html or b"") for page in pages])

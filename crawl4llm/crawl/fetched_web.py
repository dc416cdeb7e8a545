"""Webs whose pages are unknown before their fetch: the common part of all fetchers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from crawl4llm.base.errors import InputError, MissingRecord
from crawl4llm.base.pages import Corpus, PageRecord, utc_date
from crawl4llm.base.run_folder import LIVE
from crawl4llm.base.urls import parse_url
from crawl4llm.crawl.control import Control
from crawl4llm.crawl.web import load_rater
from crawl4llm.options import read_options
from crawl4llm.optouts import UNKNOWN
from crawl4llm.scoring import HtmlPage, PageRater, RatedText, Rating, influence_task

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.crawl.page_writer import RatePages
    from crawl4llm.crawl.turns import Clock
    from crawl4llm.policies import Policy
    from crawl4llm.scoring import Raters, ScoreCache


class LiveCorpus:
    """A corpus in which any http or https URL is a document, with the normalised URL as its key; nothing can be looked
    up."""

    name = LIVE

    def is_key(self, text: str) -> bool:
        """Return whether ``text`` is a normalised URL of the web."""
        return parse_url(text) == text

    def url(self, key: str) -> str:
        """Return the URL of a key, which is the key."""
        return key

    def resolve(self, url: str) -> str | None:
        """Return the key of a URL; None if it is not http or https."""
        return parse_url(url)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.is_key(key)

    def identity(self) -> str:
        """Return the name, because there is only one live web."""
        return self.name

    def check(self) -> None:
        """Check nothing."""

    def require(self, *parts: str) -> None:
        """Raise InputError for any part that pages do not bring with them."""
        for part in parts:
            if part not in {"html", "outlinks"}:
                raise InputError(f"a live crawl cannot know the {part} of a page before it is fetched")

    def close(self) -> None:
        """Close nothing."""

    def __len__(self) -> int:
        return 0

    def keys(self) -> Iterator[str]:
        """Yield no keys, because none are known."""
        return iter(())

    def sample(self, n: int, seed: int) -> list[str]:
        """Raise InputError, because the web cannot be sampled."""
        raise InputError("a live crawl needs seeds; give a file with one URL a line: -a seeds=FILE")

    def page(self, key: str) -> NoReturn:
        """Raise MissingRecord, like all look-ups."""
        raise MissingRecord(f"{key} is on the live web; it can only be fetched")

    text = html = outlinks = inlinks = page


class FetchedWeb:
    """A web whose documents are URLs and whose pages are unknown before their fetch; the base of fetchers.

    See :class:`crawl4llm.crawl.web.Web` for the meaning of each name.
    """

    profile: ClassVar[str] = "simulation"
    control: Control
    clock: Clock | None = None
    scores: ScoreCache | None = None
    text = "extracted"
    tells_sites_apart = keeps_answers = False
    host: str | None = None

    def __init__(self, settings: BaseSettings) -> None:
        """Read the settings. Raises InputError."""
        self.options = read_options(settings)
        self.control = Control()
        self.corpus: Corpus = LiveCorpus()
        self.start_date = utc_date()

    @classmethod
    def visit(cls, settings: BaseSettings, given: str | None) -> NoReturn:
        """Raise InputError, because its pages are for crawls only."""
        raise InputError(
            f"{cls.__name__} serves `crawl influence` only; look at pages that a crawl has archived, with the "
            "simulation profile and CORPUS=OUTPUT_DIR"
        )

    def check_policy(self, policy: type[Policy]) -> None:
        """Raise InputError for an order that needs to look up pages."""
        if self.options.hot_queue_topic:
            raise InputError(
                "HOT_QUEUE_TOPIC looks pages up after they were crawled, and this crawl cannot; leave it out"
            )
        if policy.looks_ahead:
            why = "needs the content of a page before it is fetched"
        elif needed := [part for part in policy.corpus_parts if part not in {"html", "outlinks"}]:
            why = f"needs the {' and '.join(needed)} of pages before they are fetched"
        else:
            return
        raise InputError(
            f"URL_POLICY {self.options.url_policy} {why}, and this crawl cannot; choose another, such as link"
        )

    def open(self, others: Collection[str] = ()) -> PageRater:
        """Open the scorer; there is nothing else to open."""
        return load_rater(LiveCorpus, self.options, self.options.text_extractor, others)

    def rating(self, workers: Raters[PageRater], *, text: bool, signature: bool) -> RatePages:
        """Return a function that rates pages by their fetched HTML."""
        task = influence_task(text=text, signature=signature, more=workers.rater.tells_more)
        return partial(_rate_html, workers, task)

    def seeds_wait(self) -> bool:
        """Return False, because no seeds come after the start."""
        return False

    def url_of_seed(self, key: str) -> str:
        """Return an empty string, because keys are URLs."""
        return ""

    def crawl_id(self, identity: Mapping[str, Any]) -> str:
        """Return a new UUID, because no two crawls of a web are equal."""
        return str(uuid.uuid4())

    def source(self, identity: Mapping[str, Any]) -> dict[str, str | None]:
        """Return empty fields, because the opt-outs of sites are not known in advance."""
        return {"robots": "unknown", "opt-out": UNKNOWN}


async def _rate_html(
    workers: Raters[PageRater], task: Callable[[PageRater, HtmlPage], Rating | RatedText], pages: Sequence[PageRecord]
) -> list[Rating | RatedText]:
    return await workers.run(task, [HtmlPage(page.url, page.html or b"") for page in pages])

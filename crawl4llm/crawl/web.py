"""The web of a run, from which it fetches its pages; this object is the only difference between simulations and live
crawls.

A *fetcher*, a downloader middleware with the attribute ``web``, answers requests from it. docs/extending.md has an
example.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.pages import Corpus
from crawl4llm.scoring import PageRater, Scorer, load_extractor, load_scorer

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from crawl4llm.crawl.control import Control
    from crawl4llm.crawl.driven import Driven
    from crawl4llm.crawl.page_writer import RatePages
    from crawl4llm.crawl.turns import Clock
    from crawl4llm.options import Options
    from crawl4llm.policies import Policy
    from crawl4llm.scoring import Raters, ScoreCache


class Web(Protocol):
    """A web to crawl. The class of its downloader middleware has it as the attribute ``web``.

    Its constructor reads settings only; ``corpus`` is there after :meth:`open`.
    """

    profile: ClassVar[str]
    """The profile in ``settings/`` for this web: ``simulation`` or ``live``."""
    options: Options
    """The settings, with the replacements of this web."""
    control: Control
    """JOBDIR/control.json as it was at the start; empty if this web does not use it."""
    clock: Clock | None
    """The time by which owners wait in continuous order: a document is handed out only when its owner may be asked.
    None: they do not wait."""
    corpus: Corpus
    """The pages that can be looked up without a fetch."""
    scores: ScoreCache | None
    """The influence scores that are known already, after :meth:`open`; None if none are kept."""
    text: str
    """Source of the scored text: ``corpus`` or ``extracted``."""
    tells_sites_apart: bool
    """True if a site may never answer; it then holds up no other site of its owner."""
    keeps_answers: bool
    """True if answers should be kept for the process that resumes the crawl."""
    start_date: str
    """The start of the crawl for the archive: W3C date-time in UTC."""
    host: str | None
    """The fetching machine, for names of archive files; None if no requests are sent."""

    def __init__(self, settings: BaseSettings) -> None:
        """Read the settings; a live crawl replaces a policy that cannot run there. Raises InputError if they are for
        another web."""

    @classmethod
    def visit(cls, settings: BaseSettings, given: str | None) -> str | None:
        """Prepare settings for requests outside a crawl: ``scrapy fetch``, or a spider of the user's own.

        Return the URL at which the document ``given`` by id or URL is requested, if one is given. Raises InputError,
        also if the web serves crawls only, and PageError for a document that it does not hold.
        """

    def check_policy(self, policy: type[Policy]) -> None:
        """Raise InputError for an order that is impossible on this web."""

    def open(self, others: Collection[str] = ()) -> PageRater:
        """Open the corpus, and the scorer that the settings name; ``others``: more scorers, by name. Raises
        InputError."""

    def rating(self, workers: Raters[PageRater], *, text: bool, signature: bool) -> RatePages:
        """Return a function that gives fetched pages their influence scores and, if wanted, their main text and its
        signature."""

    def seeds_wait(self) -> bool:
        """Return whether there are seeds to add to the running crawl. Raises InputError."""

    def url_of_seed(self, key: str) -> str:
        """Return the URL of a seed, if owners wait; empty if its key is a URL, or if it cannot be looked up."""

    def crawl_id(self, identity: Mapping[str, Any]) -> str:
        """Return a UUID for a new crawl; ``identity``: settings and digests that decide its pages and their order."""

    def source(self, identity: Mapping[str, Any]) -> dict[str, str | None]:
        """Return the fields of the archive's warcinfo records that describe the source of the pages."""


W = TypeVar("W")


def crawl_on(web: type[W], crawler: Crawler) -> tuple[W, Driven] | None:
    """Return the web of a crawler's crawl, and the crawl, for a fetcher's ``from_crawler``.

    None if the crawler runs something else: ``scrapy shell``, or another spider.
    """
    run: Any = getattr(crawler.spider, "run", None)  # of other people's spiders it may be anything
    found = getattr(run, "web", None)
    return (found, run.crawl) if isinstance(found, web) else None


def load_scorers(names: Collection[str], options: Options) -> dict[str, Scorer]:
    """Return the scorers that the policy needs besides SCORER, by name. Raises InputError."""
    with as_input_error(f"URL_POLICY = {options.url_policy!r}", errors=InputError):
        return {name: load_scorer(replace(options, scorer=name)) for name in names if name != options.scorer}


def load_rater(
    open_corpus: Callable[[], Corpus], options: Options, extractor: str | None, others: Collection[str] = ()
) -> PageRater:
    """Load the rater of a corpus's pages; the corpus is opened after the scorer, because indexing may take long.

    ``extractor`` names the function that takes text from HTML; None if the corpus's clean text is scored. Raises
    InputError, also if the corpus lacks the scored text.
    """
    scorer = load_scorer(options)
    corpus = open_corpus()
    if extractor is not None:
        load_extractor(extractor)
    corpus.require("text" if extractor is None else "html")
    return PageRater(corpus, scorer, extractor, load_scorers(others, options))

"""The simulated web: a corpus in the place of the web, with the crawl's fixed date and no network. If owners wait
between fetches, they do by a virtual clock; no time of the machine enters a simulation."""

from __future__ import annotations

import json
import logging
import uuid
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.input_files import given_path
from crawl4llm.base.output_dir import RUNS
from crawl4llm.base.pages import Corpus, PageRecord
from crawl4llm.crawl import Clock, Control, Turns, find_document, load_rater, not_held, owner_of_lease
from crawl4llm.frontier import Lease, Owners
from crawl4llm.options import DEMO, Options, read_options
from crawl4llm.optouts import TABLE_DATE, UNKNOWN
from crawl4llm.scoring import PageRater, ScoreCache, open_score_cache, rate_by_key
from simulate.clueweb22.records import NO_DATE
from simulate.opening import data_dir, demo_web, open_corpus, refuse_inside

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.crawl import Driven, RatePages
    from crawl4llm.policies import Policy
    from crawl4llm.scoring import Raters

logger = logging.getLogger(__name__)

LookUp = Callable[[str], PageRecord]
"""Returns a page by its key. Raises PageError."""

NOTED = (
    f"by crawl4llm's table of {TABLE_DATE}: pages that opt out of training are recorded, and left out of exports; "
    f"signals that the corpus has with its pages: of heads of responses and of HTML, robots.txt and tdmrep.json"
)
"""The archive's note on opt-outs for a corpus that has them."""
_ASKED_FOR = "VISITED_DOCUMENT"
"""Setting by which :meth:`SimulatedWeb.visit` names a document to :class:`Visited`: few corpora can look one up by
URL."""
_CRAWL_IDS = uuid.UUID("6f3a2b1e-1d2c-5c57-9a5e-0c4a11f0e2d3")
"""Name space of crawl ids: a crawl's id is a function of the facts that decide its pages and their order."""


class SimulatedWeb:
    """A web for crawls of the corpus that CORPUS names; see :class:`crawl4llm.crawl.web.Web`."""

    profile: ClassVar[str] = "simulation"
    corpus: Corpus
    scores: ScoreCache | None
    tells_sites_apart = keeps_answers = False
    control = Control()
    host = None

    def __init__(self, settings: BaseSettings) -> None:
        self._settings = settings
        self.options = options = read_options(settings)
        self.clock: Clock | None = None
        if options.simulation_owner_delay:
            if options.crawl_batch_size:
                raise InputError(
                    "SIMULATION_OWNER_DELAY is for continuous order, and CRAWL_BATCH_SIZE is "
                    f"{options.crawl_batch_size}; set CRAWL_BATCH_SIZE=0"
                )
            self.clock = VirtualClock(options.simulation_owner_delay, options.simulation_capacity)
        self.text = self.options.simulation_text
        self.start_date = NO_DATE
        if not self.options.corpus:
            raise InputError(
                "CORPUS is not set; set CORPUS=demo, or a path; to crawl the live web, start with SCRAPY_PROJECT=live"
            )

    @classmethod
    def visit(cls, settings: BaseSettings, given: str | None) -> str | None:
        """Return the URL of a document, and note in the settings which one is asked for under it."""
        cls(settings)  # says what is wrong with the settings
        corpus = open_corpus(settings)
        try:
            corpus.check()
            if given is None:
                return None
            key = find_document(corpus, given)
            if key not in corpus:
                raise not_held(corpus, key)
            settings.set(_ASKED_FOR, key, priority="cmdline")
            return corpus.page(key).url
        finally:
            corpus.close()

    def check_policy(self, policy: type[Policy]) -> None:
        """Do nothing: any document can be looked up."""

    def open(self, others: Collection[str] = ()) -> PageRater:
        """Open corpus and scorer."""
        out, jobdir = self.options.output_dir, self._settings.get("JOBDIR")
        begun = out is None and jobdir and Path(jobdir).exists()  # a JOBDIR knows its output
        if self.options.warc_enabled and self.options.storage is None and not begun:
            refuse_inside(self.options, Path(out or RUNS), "OUTPUT_DIR")
        self.corpus, rater = open_rater(self._settings, others)
        self.scores = open_scores(rater, self.options)
        return rater

    def rating(self, workers: Raters[PageRater], *, text: bool, signature: bool) -> RatePages:
        """Return the function that rates pages by their keys."""
        return partial(rate_by_key, workers, text=text, signature=signature)

    def seeds_wait(self) -> bool:
        """Return False: a simulation gets no further seeds."""
        return False

    def url_of_seed(self, key: str) -> str:
        """Look the URL up."""
        with suppress(PageError):  # it is said when the page is fetched
            return self.corpus.page(key).url
        return ""

    def look_up(self, crawl: Driven) -> LookUp:
        """Return the function that looks up pages for the crawl. It leaves content out if the corpus can, if nothing is
        archived, and if each page was scored before, so that its content is known to be sound."""
        outline = getattr(self.corpus, "outline", None)
        if outline is None or self.options.warc_enabled or not crawl.policy.scores_influence:
            return self.corpus.page
        return partial(outline, part="text" if self.text == "corpus" else "html")

    def crawl_id(self, identity: Mapping[str, Any]) -> str:
        """Return the same UUID for equal crawls."""
        names = ("simulation_owner_delay", "simulation_capacity", "crawl_patience") if self.clock else ()
        waits = {name: getattr(self.options, name) for name in names}
        return str(uuid.uuid5(_CRAWL_IDS, json.dumps({**identity, **waits}, sort_keys=True)))

    def source(self, identity: Mapping[str, Any]) -> dict[str, str | None]:
        """Return the archive's facts about a corpus."""
        return {
            "robots": "none: pages come from a corpus, and no requests are sent",
            "opt-out": NOTED if getattr(self.corpus, "knows_opt_outs", False) else UNKNOWN,
            "corpus": identity["corpus"],
            "corpus-digest": identity["corpus_digest"],
        }


class Visited:
    """The corpus as requests see it that belong to no crawl: documents are found by URLs."""

    def __init__(self, settings: BaseSettings) -> None:
        """Open the corpus. Raises InputError and PageError."""
        self._corpus = open_corpus(settings)
        self.page = self._corpus.page
        asked_for = settings.get(_ASKED_FOR)
        self._keys = {} if asked_for is None else {self.page(asked_for).url: asked_for}

    def resolve(self, url: str) -> str | None:
        """Return the key of the document that was asked for under this URL, or has it."""
        try:
            return self._keys.get(url) or self._corpus.resolve(url)
        except InputError as error:  # such as one that has no index of URLs
            logger.error("%s", error)  # noqa: TRY400 - it says all
            return None


def open_rater(settings: BaseSettings, others: Collection[str] = ()) -> tuple[Corpus, PageRater]:
    """Open the corpus, and the rater of its pages; ``others``: more scorers, by name. Raises InputError.

    The demo web, which is built if it is missing, has its own model.
    """
    options = read_options(settings)
    if options.scorer_model is None and options.corpus == DEMO:
        options = replace(options, scorer_model=str(demo_web().model))
    extractor = None if options.simulation_text == "corpus" else options.text_extractor
    rater = load_rater(lambda: open_corpus(settings), options, extractor, others)
    return rater.corpus, rater


def open_scores(rater: PageRater, options: Options) -> ScoreCache | None:
    """Return the influence scores of a rater's pages that are kept as SCORE_CACHE says; None for none."""
    if options.score_cache == "":
        return None
    folder = data_dir() / "scores" if options.score_cache is None else given_path(options.score_cache)
    return open_score_cache(folder, rater)


class VirtualClock:
    """Implements :class:`crawl4llm.crawl.turns.Clock` and :class:`crawl4llm.crawl.turns.Turns`.

    Fetches take no time, but slots on a time line, at least 1/``capacity`` seconds apart. The next fetch is in the
    first slot in which an owner is free; its owner then waits ``delay`` seconds. One document is on lease at a time, so
    the order does not depend on the machine. Failed documents take slots too.
    """

    most_leases: int | None = 1
    _owners: Owners

    def __init__(self, delay: float, capacity: float) -> None:
        """Begin at 0. ``capacity``: fetches a second; 0: any number."""
        self.delay = delay
        self._step = 1 / capacity if capacity else 0.0
        self._next_place = 0.0
        self._waits: deque[tuple[float, str]] = deque()
        """Ends of waits, and whose they are, in their order."""

    # -- the clock ------------------------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the time of the next place, unless it must wait for an owner."""
        return self._next_place

    def turns(self, owners: Owners) -> Turns:
        self._owners = owners
        return self

    def tick(self, owners: Owners) -> None:
        owners.tick(self._next_place)
        while (ready := owners.next_ready()) is not None and ready > owners.now:
            owners.tick(ready)

    def seconds_until(self, moment: float) -> float:
        return 0.0

    def statistics(self) -> Mapping[str, float]:
        return {"simulation/seconds": self._next_place}

    def save(self) -> dict[str, Any]:
        """Return the time, and the owners that wait: no more of them than places fit into a delay."""
        self._forget_past()
        return {"next_place": self._next_place, "waits": list(self._waits)}

    def load(self, state: Mapping[str, Any] | None, owners: Owners) -> None:
        assert state is not None  # what save() has returned
        self._next_place = state["next_place"]
        owners.tick(self._next_place)
        for until, owner in state["waits"]:
            if owners.occupy(owner):
                self._release(owner, until)

    # -- turns ----------------------------------------------------------------------------------------------------

    def begin(self, lease: Lease) -> None:
        pass

    def end(self, lease: Lease, *, asked: bool = True) -> None:
        """Let the owner wait. A document that was not requested takes no slot: it is simply leased again."""
        now, owner = self._owners.now, owner_of_lease(lease)
        if not asked:
            self._owners.release(owner, now)
            return
        self._next_place = now + self._step
        self._forget_past()
        if owner:
            self._release(owner, now + self.delay)

    def _release(self, owner: str, until: float) -> None:
        self._owners.release(owner, until)
        self._waits.append((until, owner))

    def _forget_past(self) -> None:
        while self._waits and self._waits[0][0] <= self._next_place:
            self._waits.popleft()

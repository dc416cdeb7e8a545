"""The tasks of the worker processes: look up pages, extract their text, rate them."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.files import check_machine
from crawl4llm.base.pages import Corpus
from crawl4llm.base.reasons import ERROR, NO_TEXT
from crawl4llm.base.terminal import interrupt_held_back
from crawl4llm.scoring.lines import Lines, lines_of
from crawl4llm.scoring.scorer import Scorer
from crawl4llm.scoring.signatures import signature_of
from crawl4llm.scoring.text import EXTRACTORS, extract_text

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)


class TextSet(Protocol):
    """Known texts; see :class:`crawl4llm.parts.known_texts.work.KnownTexts`."""

    @property
    def identity(self) -> str: ...

    def knows(self, text: str, signature: bytes) -> bool: ...


class TextClassifier(Protocol):
    """Gives a text a class; see :class:`crawl4llm.scoring.classifiers.Classifier`."""

    def classify(self, text: str) -> int | None: ...


@dataclass(frozen=True)
class PageRater:
    """The objects that a worker needs: pickled if processes are spawned, inherited if they are forked."""

    corpus: Corpus
    scorer: Scorer
    extractor: str | None
    """Name of the extractor of text from HTML; None for the corpus's own clean text."""
    others: Mapping[str, Scorer] = field(default_factory=dict)
    """Further scorers that the policy needs, by name."""
    known_texts: TextSet | None = None
    """Known texts, if pages are compared with some."""
    classifiers: Sequence[TextClassifier] = ()
    """Classifiers of MIXTURE."""
    lines: bool = False
    """True if figures of a text's lines are wanted (:mod:`crawl4llm.scoring.lines`)."""

    def load(self) -> None:
        """Load what scorers load late, so that processes forked later share it. Raises InputError."""
        for one in (self.scorer, *self.others.values(), *self.classifiers):
            if load := getattr(one, "load", None):
                load()

    def text(self, key: str) -> str:
        """Return the scored text. Raises PageError."""
        if self.extractor is None:
            return self.corpus.text(key)
        return self.extract(self.corpus.html(key))

    def extract(self, html: bytes) -> str:
        """Return the main text of HTML in UTF-8; there must be an extractor."""
        assert self.extractor is not None
        return extract_text(html, EXTRACTORS[self.extractor])

    @property
    def tells_more(self) -> bool:
        """True if a text's classes or lines are wanted, besides its score and its signature."""
        return self.lines or bool(self.classifiers)

    def scorer_named(self, name: str) -> Scorer:
        """Return one of ``others``, otherwise the scorer of influence."""
        return self.others.get(name, self.scorer)


@dataclass(frozen=True, order=True)
class HtmlPage:
    """A page to rate; logs show it without its HTML."""

    url: str
    html: bytes = field(repr=False)
    """In UTF-8."""
    link_texts: frozenset[str] | None = field(default=None, repr=False, compare=False)
    """The texts of its links, if they are known."""

    @property
    def weight(self) -> int:
        """Its bytes."""
        return len(self.html)


class Rating(NamedTuple):
    """A page's finite score, or the reason why it has none; ``no_text`` comes with a score of 0."""

    score: float | None
    reason: str | None = None


class RatedText(NamedTuple):
    """A rating with its text, or the signature of that. The fields after the reason have the order of those in
    :class:`crawl4llm.parts.Rated`."""

    score: float | None
    reason: str | None
    text: str | None
    """None if only the signature is wanted."""
    signature: bytes = b""
    """See :mod:`crawl4llm.scoring.signatures`; empty if it is not wanted, or the text is blank."""
    known: bool = False
    """True if the text is a known one, word for word or nearly."""
    classes: tuple[int, ...] | None = None
    """Its class by each classifier; None if it is blank."""
    lines: Lines | None = None
    """Figures of its lines, if they are wanted; None if it is blank."""


Task = Callable[[PageRater, str], Rating]
"""A function that rates a page of the corpus; a worker finds it by its module and name."""
R = TypeVar("R")
"""Type of the rater: :class:`PageRater`, or another one with the objects that its tasks need."""
J = TypeVar("J")
"""Type of a rated object, for example a document key."""
P = TypeVar("P", bound="Comparable")
"""Type of what identifies a page, such as a document key."""
T = TypeVar("T")
"""Type of a task's result: a Rating, or more."""


class Comparable(Protocol):
    """A value that can be sorted and hashed."""

    def __lt__(self, other: Any) -> bool: ...

    def __hash__(self) -> int: ...


class Raters(Generic[R]):
    """Rates pages in this process; :class:`~crawl4llm.scoring.workers.PageWorkers` rates them in others."""

    processes = 0

    def __init__(self, rater: R) -> None:
        self.rater = rater

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Load what the rater needs."""
        if load := getattr(self.rater, "load", None):
            load()

    def close(self) -> None:
        """End its processes and close its files, of which this class has none."""

    async def run(self, task: Callable[[R, P], T], pages: Sequence[P]) -> list[T | Rating]:
        """Return a task's result for each page, in the order of ``pages``."""
        return rate_all(self.rater, task, pages)

    def run_all(self, task: Callable[[R, P], T], pages: Sequence[P]) -> list[T | Rating]:
        """Like :meth:`run`, for code outside an event loop. Ctrl-C raises KeyboardInterrupt while pages are rated.

        An event loop prints errors of its own if Ctrl-C interrupts it while it is made or closed, or if two of its
        tasks end by KeyboardInterrupt.
        """
        with ExitStack() as held_back:
            held_back.enter_context(interrupt_held_back())

            async def run() -> list[T | Rating]:
                held_back.pop_all().close()
                try:
                    return await self.run(task, pages)
                except KeyboardInterrupt:
                    raise asyncio.CancelledError from None
                finally:
                    held_back.enter_context(interrupt_held_back())

            try:
                return asyncio.run(run())
            except asyncio.CancelledError:
                raise KeyboardInterrupt from None

    async def run_chunk(self, task: Callable[[R, P], T], pages: Sequence[P]) -> list[T | Rating]:
        """Like :meth:`run`, for a few pages in one process."""
        return rate_all(self.rater, task, pages)


def influence(rater: PageRater, page: str | HtmlPage) -> Rating:
    """Return the influence score of a page's main text."""
    name, text = _named(rater, page)
    return rate_text(rater.scorer, text, name)


def _influence_and_text(rater: PageRater, page: str | HtmlPage) -> RatedText:
    """Return the influence score of a page's main text, and the text."""
    name, text = _named(rater, page)
    return RatedText(*rate_text(rater.scorer, text, name), text)


def _named(rater: PageRater, page: str | HtmlPage) -> tuple[str, str]:
    """Return the name of a page in errors, and its main text. Raises PageError."""
    return (page, rater.text(page)) if isinstance(page, str) else (page.url, rater.extract(page.html))


def _all_of_text(rater: PageRater, page: str | HtmlPage, *, text: bool, signature: bool) -> RatedText:
    """Return the influence score of a page's main text and, if wanted, its classes, the figures of its lines, its
    signature and the text itself. The signature also tells whether the text is known."""
    name, main = _named(rater, page)
    signed, known = b"", False
    if signature:
        signed = signature_of(main)
        known = rater.known_texts is not None and rater.known_texts.knows(main, signed)
    found = [classifier.classify(main) for classifier in rater.classifiers]
    classes = tuple(one for one in found if one is not None)
    rating = rate_text(rater.scorer, main, name)
    lines = lines_of(main, _link_texts(rater, page)) if rater.lines else None
    return RatedText(*rating, main if text else None, signed, known, classes or None, lines)


def _link_texts(rater: PageRater, page: str | HtmlPage) -> frozenset[str]:
    """Return the texts of a page's links; none for a corpus's own clean text. Raises PageError."""
    from crawl4llm.base.html_tree import HtmlTree, link_texts  # few crawls need it here

    if isinstance(page, str):
        return frozenset() if rater.extractor is None else link_texts(HtmlTree(rater.corpus.html(page)))
    return link_texts(HtmlTree(page.html)) if page.link_texts is None else page.link_texts


def influence_task(
    *, text: bool, signature: bool, more: bool = False
) -> Callable[[PageRater, str | HtmlPage], Rating | RatedText]:
    """Return the task that gives the influence score of a page and, if wanted, its main text and signature. ``more``:
    see :attr:`PageRater.tells_more`."""
    if signature or more:
        return partial(_all_of_text, text=text, signature=signature)
    return _influence_and_text if text else influence


def scores_by(rater: PageRater, key: str, names: Sequence[str]) -> list[float]:
    """Return the scores of a page's main text by several scorers; 0 each if it is blank."""
    text = rater.text(key)
    return [score_of(rater.scorer_named(name), text, key) if text.strip() else 0.0 for name in names]


def score_of(scorer: Scorer, text: str, page: str) -> float:
    """Return the score of one text. Raises InputError, naming its page, if that is not a finite number."""
    try:
        (score,) = scorer.score([text])
        finite = math.isfinite(score)
    except InputError as error:
        raise InputError(f"{error} (page {page})") from None
    if not finite:
        raise InputError(f"{type(scorer).__name__} gave page {page} the score {score}; a scorer gives finite numbers")
    return score


def rate_text(scorer: Scorer, text: str, page: str) -> Rating:
    """Return the score of a page's text, 0 with ``no_text`` if it is blank. Raises the errors of :func:`score_of`."""
    return Rating(score_of(scorer, text, page)) if text.strip() else Rating(0.0, NO_TEXT)


def indegree(rater: PageRater, key: str) -> Rating:
    """Return the number of links to a page that the corpus records."""
    return Rating(float(len(rater.corpus.inlinks(key))))


def rate_all(rater: R, task: Callable[[R, J], T], pages: Sequence[J]) -> list[T | Rating]:
    """Run a task on each page; a page that fails gets a Rating with the reason and harms no other.

    Raises InputError if a task does, and MachineError if a resource of this machine is exhausted.
    """
    ratings: list[T | Rating] = []
    for page in pages:
        try:
            ratings.append(task(rater, page))
        except PageError as error:
            logger.debug("%s", error)
            ratings.append(Rating(None, error.reason))
        except InputError:
            raise
        except (Exception, SystemExit) as error:
            check_machine(error)
            logger.exception("Cannot rate %s", page)
            ratings.append(Rating(None, ERROR))
    return ratings

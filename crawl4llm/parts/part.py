"""The base class of parts: its methods are the hooks between a part and the crawl."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from crawl4llm.base.errors import Why

if TYPE_CHECKING:
    from pathlib import Path

    from crawl4llm.base.page_heads import PageHead
    from crawl4llm.base.pages import Corpus, Link, PageRecord
    from crawl4llm.frontier import Entry, Outcome, Shares
    from crawl4llm.policies import Candidate, CrawledPage, Pieces
    from crawl4llm.scoring import Lines, TextClassifier, TextSet

EVERYWHERE, CONTINUOUS, ALONE = "everywhere", "continuous", "alone"
"""Values of :attr:`Declaration.partitioned`: the crawls with STORAGE that may have a part."""


class Declaration(NamedTuple):
    """Facts about a part that are available without importing its work."""

    name: str
    setting: str
    """The setting that switches it on, or the first of several."""
    work: str
    """Dotted path of its class, which is imported if the part is used."""
    asked: Callable[[Any], bool]
    """Returns whether settings switch it on."""
    reasons: Mapping[str, str] = {}
    """Reasons of documents that it drops, with their meanings."""
    counts: Mapping[str, str] = {}
    """Its figures, by stats key, with their meanings."""
    ends: Mapping[str, str] = {}
    """Its reasons to end a crawl as complete, with their meanings."""
    partitioned: str = EVERYWHERE


class Needs(NamedTuple):
    """Facts about each page that a part needs besides the score. The scorer provides them."""

    signature: bool = False
    """The signature of its text (:mod:`crawl4llm.scoring.signatures`)."""
    known_texts: TextSet | None = None
    """Known texts with which its text is compared."""
    classifiers: Sequence[TextClassifier] = ()
    """Classifiers that give its classes."""
    lines: bool = False
    """Figures of its text's lines (:mod:`crawl4llm.scoring.lines`)."""


class Refusal(NamedTuple):
    """The reason why a document is dropped before it is requested."""

    reason: str
    why: Why | None = None
    """The rule that decides."""
    counted: str | None = None
    """A further figure that counts it, if a link led to it."""


class Answered(NamedTuple):
    """A known page, which a part gives in the place of a request."""

    page: PageRecord
    """The page with its links, without content."""
    influence: float | None
    """Its influence score, for the policy; None if it is not known."""
    refusal: Refusal
    """The reason why it is not archived."""


@dataclass(slots=True)
class Rated:
    """A fetched page with the results of the scorer. The parts see it one after the other, and may change it."""

    influence: float | None
    """Its influence score; None if that could not be computed."""
    text: str | None = None
    """Its main text, if the archive keeps texts; None if it has none."""
    signature: bytes = b""
    """The signature of its text; empty if nothing needs it, or the text is blank."""
    known: bool = False
    """True if its text is a known one."""
    classes: tuple[int, ...] | None = None
    """See :attr:`crawl4llm.policies.CrawledPage.classes`."""
    lines: Lines | None = None
    """Figures of its text's lines; None if nothing needs them, or the text is blank."""
    novel: bool | None = None
    """True if its text is new, False if not; None if it has none, or no part compares texts."""
    has_new_text: bool = True
    """True if it has a new text, or no part compares texts."""
    is_vain: bool = False
    """True if policies should see it as worthless."""
    left: str | None = None
    """The figure that counts its links if they are not followed; None if they are."""
    key: str = ""
    """Its document key, after redirects."""
    url: str = ""
    noindex: bool = False
    """True if it asks not to be indexed."""
    is_counted: bool = True
    """False if it does not count towards N, and is worthless to policy, budgets and shares."""
    dropped: Refusal | None = None
    """The reason why it is not archived, though its links may be followed; None if it is archived. A part that sets it
    must also mark the page as not counted."""
    follows: bool = True
    """True if its links may be followed."""
    head: PageHead | None = None
    """Its head; None if it is unknown."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Fields for its metadata record in the archive."""
    line: dict[str, Any] = field(default_factory=dict)
    """Fields for its line of the crawl log."""

    @property
    def has_worth(self) -> bool:
        """True if the crawl wants such pages: it counts, and its text is new."""
        return self.is_counted and self.has_new_text

    @property
    def worth(self) -> float | None:
        """The influence score for the policy: at most 0 if the page does not count, or is worthless."""
        return self.influence if self.is_counted and not self.is_vain else min(self.influence or 0.0, 0.0)

    def compare(self, *, is_new: bool) -> None:
        """Note whether the text is new to a part; it is new only if it is new to all."""
        self.novel = (is_new and self.novel is not False) if self.signature else None
        self.has_new_text = bool(self.novel)


class Shelf(Protocol):
    """The documents that :meth:`Part.lease` set aside."""

    def take_back(self, owner: str, scope: str, most: int) -> int:
        """Requeue the best ``most`` documents that were set aside for a scope; return their number."""


class Part:
    """An optional feature of a crawl. The hooks of this class do nothing; only those that a class overrides are called.

    A part is made from the settings (``Part(options)``); this may read files and raise InputError. It makes its state
    in :meth:`begin`. Each partition of a cluster crawl begins with a copy of the part. Partitions share the files, but
    no state.
    """

    name: str
    """The key of its saved state."""
    SETTINGS: ClassVar[Mapping[str, Any]] = {}
    """For external parts: settings with their defaults; their values are in ``options.own``."""
    REASONS: ClassVar[Mapping[str, str]] = {}
    COUNTS: ClassVar[Mapping[str, str]] = {}
    ENDS: ClassVar[Mapping[str, str]] = {}
    """For external parts, see :class:`Declaration`; so is ``partitioned``."""
    partitioned: ClassVar[str] = ALONE
    counts: Counter[str]
    """The figures of the crawl, to which it adds its own, after :meth:`begin`."""
    shelf: Shelf
    """The documents that it has set aside, after :meth:`begin`."""
    shares: Shares | None = None
    """The shares of classes for the order of the frontier, if the part wants them."""
    answering: Part | None = None
    """The part of the crawl that answers documents without a request, if there is one, after :meth:`begin`."""
    spent = ""
    """The reason for the end of a crawl in which only documents that it set aside remain."""

    def __init__(self, options: Any) -> None:
        self.options = options

    # -- before the first page --------------------------------------------------------------------------------------

    def needs(self) -> Needs:
        """Return the facts about each page that a scorer must provide."""
        return Needs()

    def identity(self) -> Mapping[str, Any]:
        """Return the values that decide which pages are crawled in which order, by its own names, in JSON values."""
        return {}

    def meet(self, corpus: Corpus) -> None:
        """See the corpus of the crawl. Raises InputError if the part is for another one."""

    def publish(self, output: Path, *, fsync: bool) -> None:
        """Write lists or rules of the part into the output directory. Raises InputError."""

    def begin(self) -> None:
        """Make the state of a crawl, or of a partition of it."""

    # -- links, redirects and seeds ---------------------------------------------------------------------------------

    def follows(self, source: Entry, links: Sequence[Link]) -> Sequence[Link]:
        """Return the links of a page that may be followed, and count the others. A document that one link may not lead
        to is not visited, so that another link may."""
        return links

    def leads(self, page: Rated, links: Sequence[Link]) -> Sequence[Link]:
        """Return the links of a page that have a target, and count the others, which the policy does not see. Called
        before the links are divided among partitions."""
        return links

    def admits(self, candidate: Candidate) -> Refusal | None:
        """Return why a document is dropped when the first link to it is found; None if it is queued."""
        return None

    def redirects(self, source: Entry, url: str) -> Refusal | None:
        """Return why redirects of a document may not lead to a URL."""
        return None

    def seeds(self, url: str) -> Refusal | None:
        """Return why a seed is dropped."""
        return None

    def blocks(self, url: str) -> Refusal | None:
        """Return why no request may be sent to a URL, whatever led to it. Called for links, redirects and seeds, and
        for each request."""
        return None

    def may_list(self, site: str, url: str) -> bool:
        """Return whether a list of URLs (a sitemap) that a site names may be requested; both are URLs."""
        return True

    def wants(self, languages: Collection[str]) -> bool:
        """Return whether a page is wanted that a list of URLs (a sitemap) marks as of these languages."""
        return True

    def found(self, page: CrawledPage, new: Sequence[Candidate]) -> None:
        """Called for each page whose links are followed, with the documents first found on it that were not dropped."""

    def place(self, entries: Sequence[Entry]) -> None:
        """Change documents that are queued next."""

    # -- leases -----------------------------------------------------------------------------------------------------

    def drops(self, entry: Entry) -> Refusal | None:
        """Return why a queued document is dropped when its turn comes; None if it is still wanted."""
        return None

    def lease(self, entry: Entry) -> str | None:
        """Return the scope under which a document is set aside when its turn comes; None if it may be fetched now."""
        return None

    def ended(self, entry: Entry, outcome: Outcome | None, *, asked: bool) -> None:
        """Called when a lease ends that the part allowed. ``outcome``: None if the document is queued again. ``asked``:
        whether it may have been requested, at its owner's cost."""

    # -- pages that are not requested -------------------------------------------------------------------------------

    def answers(self, key: str) -> int | None:
        """Return the size in bytes of the answer to a document, if the part has one; None if the document must be
        requested. Raises InputError. A crawl has one part with this hook."""
        return None

    def is_answered(self, entry: Entry) -> bool:
        """Return whether it answers a queued document. Raises InputError."""
        return self.answers(entry.key) is not None

    def known_influence(self, key: str) -> float | None:
        """Return the influence score of a document that it answers; None if it is not known. Raises InputError."""
        return None

    def answer(self, key: str) -> Answered:
        """Return the answer to a document, once, when its turn in the crawl log comes. Raises InputError."""
        raise NotImplementedError

    # -- pages ------------------------------------------------------------------------------------------------------

    def rated(self, place: int, page: Rated) -> None:
        """See a fetched page, and change the facts about it. ``place``: its place in the crawl, from 0."""

    def crawled(self, entry: Entry, page: Rated) -> None:
        """Called for each archived page; ``entry``: the document as it left the frontier."""

    # -- the end, and what is told of it ----------------------------------------------------------------------------

    def finished(self) -> str | None:
        """Return a reason to end the crawl, though more could be fetched."""
        return None

    def figures(self, figures: Mapping[str, float | None]) -> Mapping[str, float | None]:
        """Return figures that are computed from others. Pieces cannot be read here, because the crawl may be closed."""
        return {}

    def lines(self, figures: Mapping[str, float | None]) -> Iterator[str]:
        """Yield lines for the summary at the crawl's end, from its figures. Pieces cannot be read here."""
        return iter(())

    # -- pause and resume -------------------------------------------------------------------------------------------

    def keep_in(self, pieces: Pieces) -> None:
        """Restore state from ``pieces``, and keep it there from now on. Raises StoreError."""

    def save(self) -> Any:
        """Return the rest of its state in JSON values; None: nothing. Pieces become durable with the next commit."""
        return None

    def load(self, state: Any) -> None:
        """Restore the state that :meth:`save` returned. Raises ValueError, or errors of look-ups, for anything else."""

    def committed(self) -> None:
        """Called after each commit."""

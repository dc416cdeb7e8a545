"""The class of parts: its methods are the hooks by which a part meets the crawl."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from crawl4llm.base.errors import Why

if TYPE_CHECKING:
    from pathlib import Path

    from crawl4llm.base.page_heads import PageHead
    from crawl4llm.base.pages import Link
    from crawl4llm.frontier import Entry, Outcome, Shares
    from crawl4llm.policies import Candidate, CrawledPage, Pieces
    from crawl4llm.scoring import Lines, TextClassifier, TextSet

EVERYWHERE, CONTINUOUS, ALONE = "everywhere", "continuous", "alone"
"""Of :attr:`Declaration.partitioned`: which crawls with STORAGE may have a part."""


class Declaration(NamedTuple):
    """Facts about a part, for which its work is not imported."""

    name: str
    setting: str
    """The setting that asks for it, or the first one of several."""
    work: str
    """Dotted path of its class, which is imported if the part is asked for."""
    asked: Callable[[Any], bool]
    """Returns whether settings ask for it."""
    reasons: Mapping[str, str] = {}
    """Reasons for which it drops documents, with their meanings."""
    counts: Mapping[str, str] = {}
    """Its figures, by their keys in the stats, with their meanings."""
    ends: Mapping[str, str] = {}
    """Reasons for which it ends a crawl that has done what it was to do, with their meanings."""
    partitioned: str = EVERYWHERE


class Needs(NamedTuple):
    """Facts about each page that a part needs besides the score. The scorer finds them."""

    signature: bool = False
    """The signature of its text (:mod:`crawl4llm.scoring.signatures`)."""
    known_texts: TextSet | None = None
    """Known texts: is its text one of them?"""
    classifiers: Sequence[TextClassifier] = ()
    """Its classes by these."""
    lines: bool = False
    """Figures of its text's lines (:mod:`crawl4llm.scoring.lines`)."""


class Refusal(NamedTuple):
    """Why a document is dropped before it is asked for."""

    reason: str
    why: Why | None = None
    """The rule that says so."""
    counted: str | None = None
    """One more figure that counts it, if a link led to it."""


@dataclass(slots=True)
class Rated:
    """A page that was fetched, as the scorer rated it. The parts see it one after the other, and may change it."""

    influence: float | None
    """Its influence score; None if that could not be computed."""
    text: str | None = None
    """Its main text, if the archive keeps texts; None if it has none."""
    signature: bytes = b""
    """That of its text; empty if nothing needs it, or the text is blank."""
    known: bool = False
    """True if its text is a known one."""
    classes: tuple[int, ...] | None = None
    """See :attr:`crawl4llm.policies.CrawledPage.classes`."""
    lines: Lines | None = None
    """Figures of its text's lines; None if nothing needs them, or the text is blank."""
    novel: bool | None = None
    """True if its text is new, False if not; None if it has none, or no part compares texts."""
    has_new_text: bool = True
    """True if it has a text that is new, or no part compares texts."""
    is_vain: bool = False
    """True if policies are to be told that it is worth nothing."""
    left: str | None = None
    """The figure that counts its links if they are not followed; None if they are."""
    key: str = ""
    """Its document key, after redirects."""
    url: str = ""
    noindex: bool = False
    """True if it asks to be kept out of indexes."""
    is_counted: bool = True
    """False if it does not count to N, and is worth nothing to policy, budgets and shares."""
    dropped: Refusal | None = None
    """Why it is not archived, though its links may be followed; None if it is. Whoever sets it says that the page is
    not counted."""
    follows: bool = True
    """True if its links may be followed."""
    head: PageHead | None = None
    """What it says of itself; None if that is not known."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Fields for its metadata record in the archive."""
    line: dict[str, Any] = field(default_factory=dict)
    """Fields for its line of the crawl log."""

    @property
    def has_worth(self) -> bool:
        """True if it is a page that the crawl is after: it counts, and its text is new."""
        return self.is_counted and self.has_new_text

    @property
    def worth(self) -> float | None:
        """Its influence score as a policy is told it: nothing, 0 or less, of a page that does not count or brings
        nothing."""
        return self.influence if self.is_counted and not self.is_vain else min(self.influence or 0.0, 0.0)

    def compare(self, *, is_new: bool) -> None:
        """Note whether the text is new to a part; it is new if it is so to all."""
        self.novel = (is_new and self.novel is not False) if self.signature else None
        self.has_new_text = bool(self.novel)


class Shelf(Protocol):
    """The documents that were set aside because :meth:`Part.lease` said so."""

    def take_back(self, owner: str, scope: str, most: int) -> int:
        """Queue the best documents again that were set aside for a scope, ``most`` at most; return how many."""


class Part:
    """Something that a crawl also does. All that is here does nothing: a hook is called only if a class overrides it.

    A part is made of the settings (``Part(options)``), which may read files and raise InputError. It makes its state in
    :meth:`begin`. Each partition of a crawl by several workers begins with a copy of the part. Partitions share the
    files, and no state.
    """

    name: str
    """The key of its saved state."""
    SETTINGS: ClassVar[Mapping[str, Any]] = {}
    """Of somebody else's part: its settings with their defaults, whose values are in ``options.own``."""
    REASONS: ClassVar[Mapping[str, str]] = {}
    COUNTS: ClassVar[Mapping[str, str]] = {}
    ENDS: ClassVar[Mapping[str, str]] = {}
    """Of somebody else's part: as in :class:`Declaration`, and so is ``partitioned``."""
    partitioned: ClassVar[str] = ALONE
    counts: Counter[str]
    """The figures of the crawl, for its own ones, after :meth:`begin`."""
    shelf: Shelf
    """The documents that it has set aside, after :meth:`begin`."""
    shares: Shares | None = None
    """The shares of classes by which the frontier goes, if the part wants some."""
    spent = ""
    """The reason for which a crawl ends if all that is left was set aside."""

    def __init__(self, options: Any) -> None:
        self.options = options

    # -- before the first page --------------------------------------------------------------------------------------

    def needs(self) -> Needs:
        """Return what a scorer is to find out about each page."""
        return Needs()

    def identity(self) -> Mapping[str, Any]:
        """Return what of it decides which pages are crawled in which order, by names of its own, as JSON takes it."""
        return {}

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
        """Return those links of a page which lead anywhere, and count the others: these are not told to the policy. It
        is called before the links are divided among partitions."""
        return links

    def admits(self, candidate: Candidate) -> Refusal | None:
        """Return why a document is dropped to which a page was the first to link; None if it is queued."""
        return None

    def redirects(self, source: Entry, url: str) -> Refusal | None:
        """Return why no redirect of a document may lead to a URL."""
        return None

    def seeds(self, url: str) -> Refusal | None:
        """Return why a seed is dropped."""
        return None

    def blocks(self, url: str) -> Refusal | None:
        """Return why nothing may be sent to a URL, whatever led to it: it is asked of links, redirects and seeds, and
        of each request."""
        return None

    def may_list(self, site: str, url: str) -> bool:
        """Return whether a list of URLs (a sitemap) may be asked for that a site names; both are URLs."""
        return True

    def wants(self, languages: Collection[str]) -> bool:
        """Return whether a page is wanted that a list of URLs (a sitemap) says to be in one of some languages."""
        return True

    def found(self, page: CrawledPage, new: Sequence[Candidate]) -> None:
        """Hear of a page whose links are followed, and of the documents first found on it that were not dropped."""

    def place(self, entries: Sequence[Entry]) -> None:
        """Change documents that are queued next."""

    # -- leases -----------------------------------------------------------------------------------------------------

    def drops(self, entry: Entry) -> Refusal | None:
        """Return why a document is dropped when its turn comes, though it was queued; None if it is wanted still."""
        return None

    def lease(self, entry: Entry) -> str | None:
        """Return the scope under which a document is set aside when its turn comes; None if it may be fetched now."""
        return None

    def ended(self, entry: Entry, outcome: Outcome | None, *, asked: bool) -> None:
        """Hear that a lease ended which the part let begin. ``outcome``: None if the document is queued again.
        ``asked``: whether it may have been asked for at its owner's cost."""

    # -- pages ------------------------------------------------------------------------------------------------------

    def rated(self, place: int, page: Rated) -> None:
        """See a page that was fetched, and change what is known of it. ``place``: its place in the crawl, from 0."""

    def crawled(self, entry: Entry, page: Rated) -> None:
        """Hear of a page that was archived; ``entry``: the document as it left the frontier."""

    # -- the end, and what is told of it ----------------------------------------------------------------------------

    def finished(self) -> str | None:
        """Return why the crawl is to end, though more could be fetched."""
        return None

    def figures(self, figures: Mapping[str, float | None]) -> Mapping[str, float | None]:
        """Return figures that are computed of others. Pieces cannot be read here: the crawl may be closed."""
        return {}

    def lines(self, figures: Mapping[str, float | None]) -> Iterator[str]:
        """Yield lines of the summary at the crawl's end, by its figures. Pieces cannot be read here."""
        return iter(())

    # -- pause and resume -------------------------------------------------------------------------------------------

    def keep_in(self, pieces: Pieces) -> None:
        """Keep state in pieces from now on, and go on from what is there. Raises StoreError."""

    def save(self) -> Any:
        """Return the rest of its state as JSON takes it; None: nothing. Pieces last with the next commit."""
        return None

    def load(self, state: Any) -> None:
        """Go on from what :meth:`save` returned. Raises ValueError, or what look-ups raise, for anything else."""

    def committed(self) -> None:
        """Hear that all up to here lasts."""

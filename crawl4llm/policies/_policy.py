"""The class of policies, how one is loaded, and their settings."""

from __future__ import annotations

import pkgutil
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import parse_json
from crawl4llm.base.settings import fixed, is_dotted, loaded, one_of, optional_text, terms
from crawl4llm.base.shapes import fits
from crawl4llm.scoring import Rating as Rating, parse_weights, scorer_name  # noqa: PLC0414 - policies give ratings

if TYPE_CHECKING:
    from crawl4llm.base.pages import Link
    from crawl4llm.frontier import Entry
    from crawl4llm.scoring import PageRater, Raters

V = TypeVar("V")


class Candidate(NamedTuple):
    """A newly discovered document, with the facts known before its fetch."""

    key: str
    url: str
    depth: int
    """Links from the nearest seed along which it was found."""
    parent: str | None
    """Key of the page it was first seen on; None for a seed."""
    anchor: str = ""


class CrawledPage(NamedTuple):
    """A crawled page, as policies receive it."""

    entry: Entry
    """The document as it left the frontier; its URL is the page's own, for seeds too."""
    influence: float | None
    """Its influence score; None if that could not be computed; 0 or less if it does not count to N."""
    links: Sequence[Link]
    """All its outlinks in page order: also those without a key, and those to documents visited before."""
    novel: bool | None = None
    """True if its text is new: neither known nor a near duplicate of an earlier page's. None without a text, or if
    texts are not compared."""
    classes: tuple[int, ...] | None = None
    """MIXTURE: the number of its class by each classifier; None without a text or without classifiers."""
    archived: bool = True
    """False of a page that a part dropped after it was read, and of a list of URLs that is no page."""


SCORER_PREFIX = "scorer:"
"""``scorer:NAME`` is the policy that looks ahead by a scorer of that name or dotted path."""


def overriding(policy: Policy, hook: str) -> list[Callable[..., Any]]:
    """Return a method of a policy, if it has one that does something."""
    own, base = getattr(type(policy), hook), getattr(BasePolicy, hook)
    return [] if own is base else [getattr(policy, hook)]


def known_policies() -> list[str]:
    """Return the names of the policies that come with the project."""
    modules = pkgutil.iter_modules([str(Path(__file__).parent)])
    return sorted(module.name for module in modules if not module.name.startswith("_"))


def _policy_name(value: Any) -> str:
    """Take one of the known policies, ``scorer:`` and a scorer, or the dotted path of a policy class."""
    if str(value).startswith(SCORER_PREFIX):
        return SCORER_PREFIX + scorer_name(str(value).removeprefix(SCORER_PREFIX))
    return str(value) if is_dotted(value) else str(one_of(*known_policies())(value))


def _scorer_weights(value: Any) -> str:
    """Take scorers and their weights; see :func:`crawl4llm.scoring.parse_weights`. May be empty."""
    if value != "":
        parse_weights(str(value))
    return str(value)


def _weighs_dotted(value: Any) -> bool:
    """Return whether one of some scorers with weights is a dotted path."""
    return any(is_dotted(part.rpartition(":")[0]) for part in str(value).split(","))


class _OfOthers(Protocol):
    """The settings of others that policies read; :class:`crawl4llm.options.Options` has them."""

    @property
    def crawl_seed(self) -> int: ...
    @property
    def corpus(self) -> str | None: ...
    @property
    def known_texts(self) -> str | None: ...


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class PolicyOptions(_OfOthers):
    """The checked values of settings for the order in which documents are crawled."""

    url_policy: str = fixed("influence", _policy_name, imports=is_dotted)
    """The policy that orders the frontier: its name, the dotted path of a policy class, or `scorer:` and a scorer as
    `SCORER` takes it. Such a scorer rates each page before it is crawled."""
    order: str = fixed("desc", one_of("desc", "asc"))
    """True if the highest scores come first, False (`asc`) if the lowest do."""
    hot_queue_topic: tuple[str, ...] = fixed((), terms)
    """Words or phrases, divided by commas. Documents with one of them in URL or anchor come before all others, whatever
    the policy. So do documents within 3 links of a page that speaks of one. Empty: none."""
    harmonic_ranks: str | None = fixed(None, optional_text)
    """`harmonic`: path of Common Crawl's ranks of hosts or domains, or of two columns, a document's key and its value,
    as `scrapy corpus ranks` writes them; gzip or not."""
    bound_scores: str | None = fixed(None, optional_text)
    """`bound`: path of the file that `scrapy corpus bound` made of this corpus with this scorer; gzip or not."""
    ensemble_weights: str = fixed("", _scorer_weights, imports=_weighs_dotted)
    """`ensemble`: scorers, as `SCORER` takes them, and their weights: `fasttext:1,length:0.5`."""


class Pieces(Protocol):
    """The store of a policy for data that grow with the crawl, so that a commit writes only the changes."""

    def mapping(
        self, name: str, is_valid: Callable[[Any], bool], *, of_documents: bool = False, seldom_read: bool = False
    ) -> MutableMapping[str, Any]:
        """Return the pieces stored under a name: a dict of JSON values, which change by assignment, not in place.
        ``is_valid`` checks each value that is read from the disk, which may be damaged. ``of_documents``: the names in
        it are keys of queued documents, whose scores change with their values. ``seldom_read``: the policy has the
        values it needs in memory, so written ones need not stay there."""


NO, EACH, COUNTED = "no", "each", "counted"
"""Of :attr:`BasePolicy.partitioned`. EACH: all scores come out as with one policy for the whole crawl. COUNTED: they do
if it is also given, in the place of each document that another partition has found, NOT_OURS to score."""
NOT_OURS = Candidate("", "", 0, None)


class BasePolicy:
    """Score_URL: the score that orders the frontier.

    As it stands, a policy reads nothing of the corpus, does not look ahead and learns nothing. One of somebody else
    need not inherit it, if it has the same attributes and methods.
    """

    name: str
    looks_ahead = False
    """True if scoring fetches the candidate itself, as the paper's policy does; only a simulation can. Such a policy
    fetches all documents it discovers, and its failures are final."""
    scores_influence = False
    """True if its score is the influence score, which then is not computed a second time; it looks ahead."""
    reranks = False
    """True if it changes the scores of queued documents (see :meth:`reranked`)."""
    corpus_parts: tuple[str, ...] = ()
    """Parts of the corpus that it reads, besides those that every crawl needs (see Corpus.require)."""
    partitioned = NO
    """Tells if each partition of a crawl (CRAWL_PARTITIONS) can have a policy of its own: NO, EACH or COUNTED. A
    partition's policy hears of every page in crawl order, but only of the links to its own documents, without anchors,
    and scores only those. The default is NO."""

    def __init__(self, workers: Raters[PageRater], options: PolicyOptions) -> None:
        """Make a policy for a crawl whose pages these workers look up. The same calls in the same order must give the
        same scores in the end, whatever the sizes of the slices in which pages and candidates come."""
        self._workers = workers
        self._options = options

    @classmethod
    def scorers(cls, options: PolicyOptions) -> Sequence[str]:
        """Return the names of scorers it needs besides SCORER, as that setting has them. Raises InputError."""
        return ()

    def identity(self) -> Mapping[str, object]:
        """Return the settings and digests of files that decide its scores; they are part of the crawl's identity."""
        return {}

    def crawled(self, page: CrawledPage) -> None:
        """Learn of a page. Called in crawl order, before the page's new outlinks are scored; not for pages that end the
        crawl, whose links are not followed."""

    @abstractmethod
    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        """Return a rating for each candidate, in order: first the seeds, later the documents found on the last crawled
        pages."""

    def reranked(self) -> Iterable[tuple[str, float]]:
        """Return keys and new scores, after each :meth:`score`; documents that are not queued are ignored."""
        return ()

    def dequeued(self, entries: Sequence[Entry]) -> None:
        """Receive the documents that left the frontier, in that order."""

    def keep_in(self, pieces: Pieces) -> None:
        """Keep data in pieces, which :meth:`save` then need not return. Called in a crawl with JOBDIR, before
        :meth:`load`; a policy without this method keeps everything itself."""

    def save(self) -> bytes:
        """Return all it has learned, equal crawls equal bytes. Not called from :meth:`crawled` to :meth:`reranked`."""
        return b""

    def load(self, state: bytes) -> None:
        """Restore a new policy from the result of :meth:`save`.

        For anything else raises ValueError, or what look-ups and arithmetic raise, so that no later call fails for it.
        """


Policy: TypeAlias = BasePolicy
"""The type of a policy, whether or not it inherits the class."""


class Wrapper(BasePolicy):
    """Passes every call on. The inner policy only ever sees scores of its own, and names its own scorers."""

    def __init__(self, inner: Policy, name: str) -> None:
        self.name = f"{name}({inner.name})"
        self.looks_ahead = inner.looks_ahead
        self.reranks = inner.reranks
        self.corpus_parts = inner.corpus_parts
        self._inner = inner

    @abstractmethod
    def _outer_score(self, key: str, score: float) -> float:
        """Return the frontier's score of a document, from the inner policy's score."""

    @abstractmethod
    def _inner_score(self, key: str, score: float) -> float:
        """Return the inner policy's score of a document, from the score that orders the frontier."""

    def identity(self) -> Mapping[str, object]:
        return self._inner.identity()

    def crawled(self, page: CrawledPage) -> None:
        self._inner.crawled(page._replace(entry=self._inner_entry(page.entry)))

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        return self._outer(candidates, await self._inner.score(candidates))

    def _outer(self, candidates: Sequence[Candidate], ratings: Sequence[Rating]) -> list[Rating]:
        """Return the ratings of the inner policy with the scores that the frontier orders by."""
        return [
            rated if rated.score is None else rated._replace(score=self._outer_score(candidate.key, rated.score))
            for candidate, rated in zip(candidates, ratings, strict=True)
        ]

    def reranked(self) -> Iterable[tuple[str, float]]:
        return ((key, self._outer_score(key, score)) for key, score in self._inner.reranked())

    def dequeued(self, entries: Sequence[Entry]) -> None:
        self._inner.dequeued([self._inner_entry(entry) for entry in entries])

    def keep_in(self, pieces: Pieces) -> None:
        """See :meth:`BasePolicy.keep_in`; the inner policy need not have it."""
        if keep_in := getattr(self._inner, "keep_in", None):
            keep_in(pieces)

    def save(self) -> bytes:
        return self._inner.save()

    def load(self, state: bytes) -> None:
        self._inner.load(state)

    def _inner_entry(self, entry: Entry) -> Entry:
        return replace(entry, score=self._inner_score(entry.key, entry.score))


def saved_state(state: bytes, shape: Any) -> Any:
    """Return a policy's saved JSON. Raises ValueError if it has another shape, because anybody may have made a
    JOBDIR."""
    found = parse_json(state)
    if not fits([found], shape):
        raise ValueError("the state of another policy")
    return found


def not_kept(mapping: MutableMapping[str, V]) -> dict[str, V]:
    """Return the part of a mapping for :meth:`BasePolicy.save`: nothing if pieces hold it (see :class:`Pieces`)."""
    return mapping if isinstance(mapping, dict) else {}


_PARTS = (
    *("name", "looks_ahead", "scores_influence", "reranks", "corpus_parts"),
    *("scorers", "identity", "crawled", "score", "reranked", "dequeued", "save", "load"),
)
"""Attributes that a policy class must have."""


def load_policy(name: str) -> type[Policy]:
    """Return the class of a policy by its name or dotted path. Raises InputError if there is none."""
    if name.startswith(SCORER_PREFIX):
        dotted = "crawl4llm.policies._scorer_policy.ScorerPolicy"
    else:
        dotted = name if "." in name else f"crawl4llm.policies.{name}.Policy"
    what, hint = f"URL_POLICY = {name!r} cannot be loaded", f"; known are: {', '.join(known_policies())}"
    found = loaded(dotted, what, hint)
    is_abstract = getattr(getattr(found, "score", None), "__isabstractmethod__", False)
    if isinstance(found, type) and not is_abstract and all(hasattr(found, part) for part in _PARTS):
        return found
    raise InputError(f"{what} (it is no policy class){hint}")

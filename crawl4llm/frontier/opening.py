"""Composes a frontier of a medium, an order and the table of leases.

By score the medium is also the order: ``MemoryDocuments``; in a store ``PlainDocuments``, or ``StoredDocuments`` for
new scores or a cap by host. By owner, class or both the order is ``ByQueues`` on ``MemoryDocuments`` or
``StoredDocuments``, with an index: ``OwnerIndex``, or on top of it ``ClassIndex``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from crawl4llm.base.domains import OWNER_RULES, owner_of
from crawl4llm.base.received import FRONTIER
from crawl4llm.frontier.composed import FRONTIER_STATE, OWNERS, ComposedFrontier, Ledger, StoredFrontier
from crawl4llm.frontier.frontier import IMPATIENT, NO_CAPS, UNREQUESTED, Caps, Patience
from crawl4llm.frontier.holds import NAME, Holds, LastingWaits, OwnerHolds
from crawl4llm.frontier.memory import MemoryDocuments, MemoryQueues
from crawl4llm.frontier.mixed import MOST_CELLS, ClassIndex, Shares, queue_of
from crawl4llm.frontier.orders import ByQueues, Index, NameOf
from crawl4llm.frontier.owners import OwnerIndex
from crawl4llm.frontier.plain import PlainDocuments
from crawl4llm.frontier.store import Store
from crawl4llm.frontier.stored import StoredDocuments, StoredQueues

_PLAIN, _SCORE, _CLASSES = "score", "score, indexed", "classes"
"""Names of orders in a store; those by owner end with the version of the rules for owners."""
_BY_OWNERS = f"{OWNERS}, {OWNER_RULES}"


def memory_frontier(
    caps: Caps = NO_CAPS, *, by_owners: bool = False, shares: Shares | None = None, patience: Patience = IMPATIENT
) -> ComposedFrontier:
    """Return an empty frontier in memory. For its order see :func:`open_frontier`."""
    name_of, ledger = _name_of(shares, by_owners=by_owners), Ledger(shares)
    documents = MemoryDocuments(name_of, by_host=caps.per_host is not None)
    if name_of is None:
        return ComposedFrontier(documents, documents, ledger, caps)
    owners = OwnerIndex(patience)
    index: Index = owners if shares is None else ClassIndex(shares, owners)
    order = ByQueues(documents, MemoryQueues(documents, index), index, name_of)
    return ComposedFrontier(documents, order, ledger, caps, owners)


def open_frontier(
    store: Store,
    caps: Caps = NO_CAPS,
    *,
    by_owners: bool = False,
    shares: Shares | None = None,
    reranks: bool = False,
    patience: Patience = IMPATIENT,
    clock: Callable[[], float] = time.monotonic,
    wall: Callable[[], float] = time.time,
    holds: OwnerHolds | None = None,
    most_fresh: int | None = None,
) -> StoredFrontier:
    """Return the frontier that a store holds, or an empty one.

    Documents are leased by score; ``by_owners``, at most one of each owner at a time; with ``shares``, first from the
    class that is furthest below its share. An order by score gives documents new scores only with ``reranks``.

    For an order by owner: ``clock`` gives all times, ``wall`` seconds since 1970, ``holds`` keeps the holds of owners
    (None: in a file beside the store). If other rules determined the owners, all documents are queued again; a store
    that is only read then has no order. ``most_fresh``: most documents in memory for sorted runs. Raises StoreError if
    the store is damaged or has a frontier of another order, and InputError if the holds cannot be read.
    """
    name_of, ledger = _name_of(shares, by_owners=by_owners), Ledger(shares)
    name = _PLAIN if not reranks and caps.per_host is None else _SCORE
    if name_of is not None:
        name = ", ".join([_CLASSES] * (shares is not None) + [_BY_OWNERS] * by_owners)
    state = store.stated(FRONTIER_STATE, FRONTIER)
    found = state.get("order", name)
    if found.partition(OWNERS)[:2] != name.partition(OWNERS)[:2]:
        raise store.damaged(f"its frontier is ordered by {found}, and not by {name}")
    ledger.load(store, state)
    if name == _PLAIN:
        plain = PlainDocuments(store, state, most_fresh)
        return StoredFrontier(store, name, plain, plain, ledger, caps)
    is_known = found == name or not store.readonly
    documents = StoredDocuments(store, name_of if is_known else None, state.get("queued", 0), caps, by_score=is_known)
    if name_of is None or not is_known:
        return StoredFrontier(store, found, documents, documents, ledger, caps)
    holds = holds or Holds(store.path.with_name(NAME), fsync=store.fsync, wall=wall)
    owners = OwnerIndex(patience, LastingWaits(holds, clock, wall) if by_owners else None)
    index: Index = owners if shares is None else ClassIndex(shares, owners)
    queues = StoredQueues(store)
    if found != name:
        queues.make_anew(documents, name_of)
    queues.load(index, len(documents))
    order = ByQueues(documents, queues, index, name_of)
    return StoredFrontier(store, name, documents, order, ledger, caps, owners)


def stored_frontier(store: Store) -> StoredFrontier:
    """Return the frontier of any order in a store, to read it or to remove documents. Raises StoreError."""
    name = store.stated(FRONTIER_STATE, FRONTIER).get("order", _PLAIN)
    shares = Shares([[0.0] * MOST_CELLS]) if name.startswith(_CLASSES) else None
    return open_frontier(store, by_owners=OWNERS in name, shares=shares, reranks=name == _SCORE)


def _name_of(shares: Shares | None, *, by_owners: bool) -> NameOf | None:
    """Return the names of queues; None if all documents are in one order."""
    if shares is not None:
        return partial(queue_of, by_owners=by_owners)
    return _owner_asked if by_owners else None


def _owner_asked(url: str, cell: int) -> str:
    """Return the owner to which a document's request goes; empty if it needs none."""
    return "" if cell == UNREQUESTED else owner_of(url)

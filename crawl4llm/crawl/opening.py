"""Puts a crawl together: its layers of frontier, its parts, and the steps of Algorithm 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from crawl4llm.base.crawl_log import LogWriter
from crawl4llm.base.domains import Domain
from crawl4llm.crawl.algorithm import Algorithm, Neighbours
from crawl4llm.crawl.counting import Counters
from crawl4llm.crawl.crawl import Crawl
from crawl4llm.crawl.gate import layered
from crawl4llm.crawl.page_writer import PageWriter, RatePages
from crawl4llm.crawl.scope import NO_LIMITS, Limits, Scope
from crawl4llm.frontier import Aside, Frontier, MemoryAside, OwnerFrontier
from crawl4llm.options import Options
from crawl4llm.parts import Needs, Parts
from crawl4llm.policies import Policy
from crawl4llm.warc import Archive

if TYPE_CHECKING:
    from crawl4llm.crawl.commits import Commits
    from crawl4llm.crawl.reorder_buffer import Spool
    from crawl4llm.crawl.turns import Clock
    from crawl4llm.frontier import VisitedSet


def open_crawl(
    options: Options,
    *,
    policy: Policy,
    rate: RatePages,
    frontier: Frontier,
    visited: VisitedSet,
    archive: Archive,
    log: LogWriter,
    parts: Parts,
    provenance: Mapping[str, str],
    by_owners: OwnerFrontier | None = None,
    aside: Aside | None = None,
    tells_sites_apart: bool = False,
    sends: bool = False,
    opted_out: Sequence[Domain] = (),
    limits: Limits = NO_LIMITS,
    neighbours: Neighbours | None = None,
    commits: Commits | None = None,
    clock: Clock | None = None,
    concurrent_leases: int = 1,
    spool: Spool | None = None,
    url_of_seed: Callable[[str], str] | None = None,
) -> Crawl:
    """Return a crawl that has not begun.

    ``by_owners``: the frontier again, if it is one of owners, which needs continuous order; they wait by the ``clock``.
    ``aside`` keeps documents that are set aside; by default in memory. ``sends``: requests are sent, and their sender
    counts them. For the other arguments see :class:`crawl4llm.crawl.crawl.Crawl`.
    """
    counters = Counters()
    layers = layered(frontier, by_owners, parts, MemoryAside() if aside is None else aside, sites=tells_sites_apart)
    parts = parts.begun(counters.counts, layers.gate)
    owned = layers.owned is not None
    scope = Scope(visited, opted_out, limits, parts, partitions=options.partitions, by_owners=owned)
    writer = PageWriter(
        archive,
        rate,
        visited=visited,
        counters=counters,
        provenance=provenance,
        rated=parts.having("rated"),
        reads=parts.needs() != Needs(),
    )
    algorithm = Algorithm(
        layers.frontier, writer, scope, policy, parts, log, counters, counts_answers=not sends, neighbours=neighbours
    )
    if layers.gate is not None:
        layers.gate.ask(parts, algorithm.drop)
    return Crawl(
        options,
        algorithm,
        layers,
        commits=commits,
        clock=clock,
        concurrent_leases=concurrent_leases,
        spool=spool,
        url_of_seed=url_of_seed,
    )

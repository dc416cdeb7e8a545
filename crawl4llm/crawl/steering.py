"""What a running crawl is told from outside: seeds, lists of links, domains that are blocked."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from crawl4llm.base.crawl_log import failure_line
from crawl4llm.base.domains import owner_of
from crawl4llm.crawl.seeds import Seeds
from crawl4llm.frontier import Outcome, OwnerFrontier
from crawl4llm.policies import CrawledPage

if TYPE_CHECKING:
    from crawl4llm.base.crawl_log import LogWriter
    from crawl4llm.crawl.counting import Counters
    from crawl4llm.crawl.scope import Scope

_OWNERS_AT_ONCE = 1000
"""Owners of whom is asked at once whether they are blocked."""


class Injected(NamedTuple):
    """Seeds for a crawl that runs."""

    seeds: Seeds
    when_committed: Callable[[], None]
    """Called after the first commit that includes all of them."""


class Arrivals:
    """What is to be visited besides the links of pages, until it is."""

    def __init__(self) -> None:
        self._injected: deque[Injected] = deque()
        self._queued: list[Injected] = []
        """Injected seeds that are queued, or were visited before, and await a commit."""
        self.lists: list[CrawledPage] = []
        """Of links that are no page's, such as a sitemap's."""

    def inject(self, injected: Injected) -> None:
        """Let more seeds be visited."""
        self._injected.append(injected)

    @property
    def has_seeds(self) -> bool:
        """Whether there are seeds to be visited."""
        return bool(self._injected)

    @property
    def awaits_commit(self) -> bool:
        """Whether somebody waits for a commit."""
        return bool(self._queued)

    def take_seeds(self, most: int, counters: Counters) -> list[str]:
        """Return some of the seeds that were injected first; count them once all are taken."""
        injected = self._injected[0]
        keys = injected.seeds.keys
        some, keys[:] = keys[:most], keys[most:]
        if not keys:
            counters.counts.update(injected.seeds.counts)
            self._queued.append(self._injected.popleft())
        return some

    def take_lists(self) -> list[CrawledPage]:
        """Return the links that are no page's, to be followed."""
        lists, self.lists = self.lists, []
        return lists

    def committed(self) -> None:
        """Tell those who injected seeds that these last."""
        for injected in self._queued:
            injected.when_committed()
        self._queued.clear()


class Blocking:
    """Drops what is queued of owners that are blocked while the crawl runs, some at a time."""

    def __init__(self, scope: Scope, frontier: OwnerFrontier, log: LogWriter) -> None:
        self._scope, self._frontier, self._log = scope, frontier, log
        self._owners: deque[str] = deque()
        """Owners who may be blocked, and whose queued documents have not all been dropped yet."""

    def look_at(self, domains: Sequence[str]) -> None:
        """Look first at those of some domains that are owners."""
        self._owners.extendleft(name for name in domains if owner_of(f"http://{name}/") == name)

    def look_at_all(self) -> None:
        """Look at all owners, in time."""
        self._owners.extend(self._frontier.owners.names)

    def drop_some(self, most: int) -> bool:
        """Drop ``most`` documents of one blocked owner; return whether there may be more. Raises InputError if the log
        cannot be written."""
        for _ in range(min(_OWNERS_AT_ONCE, len(self._owners))):
            if self._drop_some(self._owners[0], most):
                return True
            self._owners.popleft()
        return bool(self._owners)

    def _drop_some(self, owner: str, most: int) -> bool:
        if (refusal := self._scope.blocked(f"http://{owner}/")) is None:
            return False
        ended = self._frontier.drop_owner(owner, Outcome.DROPPED, refusal.reason, most)
        lines = [failure_line(Outcome.DROPPED.value, refusal.reason, entry, refusal.why) for entry in ended]
        self._log.write([], lines)
        return bool(ended)

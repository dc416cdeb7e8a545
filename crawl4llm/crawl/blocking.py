"""What is queued of domains that are blocked while a crawl runs leaves the frontier."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from crawl4llm.base.crawl_log import failure_line
from crawl4llm.base.domains import owner_of
from crawl4llm.frontier import Outcome, OwnerFrontier

if TYPE_CHECKING:
    from crawl4llm.base.crawl_log import LogWriter
    from crawl4llm.crawl.scope import Scope

_OWNERS_AT_ONCE = 1000
"""Owners of whom is asked at once whether they are blocked."""


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

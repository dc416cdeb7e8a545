"""Drops URLs that match a rule of URL_TRAPS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crawl4llm.base.errors import Why
from crawl4llm.base.reasons import TRAP
from crawl4llm.frontier import Entry
from crawl4llm.parts.part import Part, Refusal
from crawl4llm.parts.url_traps import Settings
from crawl4llm.parts.url_traps.rules import Traps
from crawl4llm.policies import Candidate


class UrlTraps(Part):
    """See the module. A redirect within a trap is followed, because a seed may lie in one."""

    name = "url_traps"

    def __init__(self, options: Settings) -> None:
        super().__init__(options)
        self._traps = Traps(options.url_traps)

    def identity(self) -> Mapping[str, Any]:
        return {"url_traps": self.options.url_traps}

    def admits(self, candidate: Candidate) -> Refusal | None:
        rule = self._traps.rule_of(candidate.url)
        return None if rule is None else _refusal(rule)

    def redirects(self, source: Entry, url: str) -> Refusal | None:
        rule = self._traps.rule_of(url)
        return None if rule is None or rule == self._traps.rule_of(source.url or source.key) else _refusal(rule)


def _refusal(rule: str) -> Refusal:
    return Refusal(TRAP, Why(f"URL_TRAPS {rule}"), f"links/trap/{rule}")

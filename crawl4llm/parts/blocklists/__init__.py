"""Block lists: domains to which no requests are sent."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.reasons import BLOCKLIST
from crawl4llm.base.settings import files, option
from crawl4llm.parts.part import Declaration


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    blocklists: tuple[str, ...] = option((), files)
    """Files of domains, divided by commas: no requests are sent to these domains and below them. Live crawls with
    `JOBDIR` read changed files again ([scope.md](scope.md#block-lists))."""


DECLARED: Final = Declaration(
    "blocklists",
    "BLOCKLISTS",
    "crawl4llm.parts.blocklists.work.BlocklistsPart",
    asked=lambda options: bool(options.blocklists),
    reasons={BLOCKLIST: "a list of BLOCKLISTS has its domain"},
)

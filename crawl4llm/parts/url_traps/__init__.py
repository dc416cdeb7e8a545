"""URL traps: named rules for URLs that lead into endless pages."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.reasons import TRAP
from crawl4llm.base.settings import fixed, some_of
from crawl4llm.parts.part import Declaration
from crawl4llm.parts.url_traps.rules import RULES


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    url_traps: tuple[str, ...] = fixed((), some_of(*RULES))
    """Rules by which links and redirects are dropped as `trap`, divided by commas: `cgi_bin`, `repeated_path`,
    `calendar`, `session_id`, `deep_path`, `many_parameters` ([traps.md](traps.md#rules)). Seeds are not. Empty: none.
    The live profile has all of them."""


DECLARED: Final = Declaration(
    "url_traps",
    "URL_TRAPS",
    "crawl4llm.parts.url_traps.work.UrlTraps",
    asked=lambda options: bool(options.url_traps),
    reasons={TRAP: "its URL matches a rule of URL_TRAPS"},
    counts={
        "links/trap/<rule>": "links to documents not visited before that were dropped as `trap`, by the rule of "
        "URL_TRAPS"
    },
)

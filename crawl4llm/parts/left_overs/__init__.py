"""Left-overs: pages whose text is not running text, but navigation, a list of links, or single words."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.settings import fixed, flag
from crawl4llm.parts.part import Declaration

LINKS, SHORT_LINES = "links", "short_lines"
"""Reasons why a text is left-overs."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    lower_left_overs: bool = fixed(False, flag)
    """Lower the influence of pages whose text is left-overs: menus, lists of links, lines of fewer than two words
    ([training.md](training.md#left-overs)). A policy that scores pages before they are fetched uses the model alone.
    The live profile has it on."""


DECLARED: Final = Declaration(
    "left_overs",
    "LOWER_LEFT_OVERS",
    "crawl4llm.parts.left_overs.work.LeftOvers",
    asked=lambda options: options.lower_left_overs,
    counts={
        "pages/left_overs": "crawled pages whose influence was lowered because their text is left-overs "
        "(LOWER_LEFT_OVERS)",
        f"left_overs/{LINKS}": "these, if their lines are long enough, but most of them are links",
        f"left_overs/{SHORT_LINES}": "these, if their lines are too short, with the links among them",
    },
)

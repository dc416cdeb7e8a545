"""Budgets: how many fetches owners and URL prefixes have left, and how they earn more."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.settings import fixed, whole
from crawl4llm.parts.part import CONTINUOUS, Declaration

BUDGETS_SPENT: Final = "budgets_spent"
"""The reason for which a crawl ends that has nothing left but documents without a budget."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    url_budget: int = fixed(0, whole(0))
    """Fetches with which each owner and each URL prefix starts; more must be earned by good pages
    ([Budgets](operating.md#budgets)). 0: any number."""


DECLARED: Final = Declaration(
    "budgets",
    "URL_BUDGET",
    "crawl4llm.parts.budgets.work.BudgetsPart",
    asked=lambda options: bool(options.url_budget),
    counts={"parked/budget": "documents for which an owner or URL prefix has no budget left (URL_BUDGET)"},
    ends={BUDGETS_SPENT: "all that is left is of owners and URL prefixes without budget"},
    partitioned=CONTINUOUS,
)

"""Budgets: the fetches that owners and URL prefixes have left, and how they earn more."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.settings import fixed, whole
from crawl4llm.parts.part import CONTINUOUS, Declaration

BUDGETS_SPENT: Final = "budgets_spent"
"""The finish reason of a crawl in which only documents without a budget are left."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    url_budget: int = fixed(0, whole(0))
    """Fetches with which each owner and each URL prefix starts; good pages earn more
    ([Budgets](operating.md#budgets)). 0: any number."""


DECLARED: Final = Declaration(
    "budgets",
    "URL_BUDGET",
    "crawl4llm.parts.budgets.work.BudgetsPart",
    asked=lambda options: bool(options.url_budget),
    counts={"parked/budget": "documents for which an owner or URL prefix has no budget left (URL_BUDGET)"},
    ends={BUDGETS_SPENT: "only documents of owners and URL prefixes without budget remain"},
    partitioned=CONTINUOUS,
)

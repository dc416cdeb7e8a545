"""The settings that say what a crawl follows; the other fields of the table are in :mod:`crawl4llm.options`."""

from __future__ import annotations

from dataclasses import dataclass

from crawl4llm.base.url_traps import RULES
from crawl4llm.option_checks import fixed, one_of, some_of, whole

OFF, FOLLOW, LEAVE = "off", "follow", "leave"
"""Of NEAR_DUPLICATES."""


@dataclass(frozen=True, kw_only=True)
class ScopeOptions:
    """The checked values of settings for links, owners and URLs that are left alone."""

    crawl_scope: str = fixed(
        "web",
        one_of("web", "domain"),
        "Links that are followed: all, or (`domain`) those within the registrable domain of the page they are on, so "
        "that no seed's crawl leaves its domain.",
    )
    url_budget: int = fixed(
        0,
        whole(0),
        "Fetches with which each owner and each URL prefix starts; more must be earned by good pages "
        "([live.md](live.md#budgets)). 0: any number.",
    )
    url_traps: tuple[str, ...] = fixed(
        (),
        some_of(*RULES),
        "Rules by which links and redirects are dropped as `trap`, divided by commas: "
        f"{', '.join(f'`{name}`' for name in RULES)} ([traps.md](traps.md#rules)). Seeds are not. Empty: none. The "
        "live profile has all of them.",
    )
    near_duplicates: str = fixed(
        OFF,
        one_of(OFF, FOLLOW, LEAVE),
        "Whether the text of each page is compared with those of the last 262,144 pages that were new: pages that are "
        "like an earlier one are counted and noted, and their links are followed (`follow`), or not (`leave`) "
        "([traps.md](traps.md#near-duplicates)). The live profile has `follow`.",
    )

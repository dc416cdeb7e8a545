"""Rules for sites with recognised software: useless pages that the software makes are not requested."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.reasons import SITE_RULE
from crawl4llm.base.settings import fixed, some_of
from crawl4llm.parts.part import CONTINUOUS, Declaration

LISTS: Final = ("wikis", "blogs", "forums", "shops", "trackers", "repositories", "mail", "docs", "generators")
"""The lists of rules, each a module of this folder."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    site_rules: tuple[str, ...] = fixed((), some_of(*LISTS))
    """Lists of rules for kinds of software, divided by commas: `wikis`, `blogs`, `forums`, `shops`, `trackers`,
    `repositories`, `mail`, `docs`, `generators` ([site-rules.md](site-rules.md)). On sites that are recognised as such
    software, links and redirects to edit forms, old revisions, feeds, sort orders and the like are dropped as
    `site_rule`. Seeds are not. Empty: none. The live profile has all of them."""


DECLARED: Final = Declaration(
    "site_rules",
    "SITE_RULES",
    "crawl4llm.parts.site_rules.work.SiteRules",
    asked=lambda options: bool(options.site_rules),
    reasons={SITE_RULE: "its URL matches a rule of SITE_RULES, on a site of that rule's software"},
    counts={
        "links/site_rule/<software>.<rule>": "documents that were dropped as `site_rule`, by the rule of SITE_RULES; "
        "those too that were queued before their site was recognised",
        "sites/recognised": "sites that were recognised as those of a software that SITE_RULES knows",
    },
    partitioned=CONTINUOUS,
)

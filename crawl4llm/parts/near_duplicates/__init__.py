"""Near duplicates: pages with nearly the text of an earlier page."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.settings import fixed, flag, one_of
from crawl4llm.parts.part import CONTINUOUS, Declaration

OFF, FOLLOW, LEAVE = "off", "follow", "leave"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    near_duplicates: str = fixed(OFF, one_of(OFF, FOLLOW, LEAVE))
    """Compare the text of each page with those of the last 262,144 new pages. Pages like an earlier one are counted and
    marked. Their links are followed (`follow`), or not (`leave`) ([traps.md](traps.md#near-duplicates)). The live
    profile has `follow`."""
    near_duplicates_worthless: bool = fixed(False, flag)
    """If on, policies see near duplicates as worthless, so that they learn where new texts are. The log has the
    unchanged influence scores. The live profile has it on."""


DECLARED: Final = Declaration(
    "near_duplicates",
    "NEAR_DUPLICATES",
    "crawl4llm.parts.near_duplicates.work.NearDuplicatesPart",
    asked=lambda options: options.near_duplicates != OFF,
    counts={
        "pages/near_duplicates": "crawled pages whose text is like that of an earlier one (NEAR_DUPLICATES)",
        "links/near_duplicate": "links on near duplicates, where NEAR_DUPLICATES leaves them",
    },
    partitioned=CONTINUOUS,
)

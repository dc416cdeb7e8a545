"""Link types: links that are not followed because of their ``rel``."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.settings import fixed, some_of
from crawl4llm.parts.part import Declaration

SPONSORED, UGC, NOFOLLOW, NOFOLLOW_ELSEWHERE = "sponsored", "ugc", "nofollow", "nofollow_elsewhere"
COUNTS: Final = {
    SPONSORED: "links/sponsored",
    UGC: "links/ugc",
    NOFOLLOW: "links/nofollow_own",
    NOFOLLOW_ELSEWHERE: "links/nofollow_elsewhere",
}
"""The figures of links that are not followed, by their types."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    skipped_link_types: tuple[str, ...] = fixed((), some_of(*COUNTS))
    """Types of links that are not followed, by their `rel`, divided by commas: `nofollow` (to the owner of the page),
    `nofollow_elsewhere` (to other owners), `ugc`, `sponsored` ([Link types](scope.md#link-types)). Empty: none. The
    live profile has `nofollow,ugc,sponsored`."""


DECLARED: Final = Declaration(
    "link_types",
    "SKIPPED_LINK_TYPES",
    "crawl4llm.parts.link_types.work.LinkTypes",
    asked=lambda options: bool(options.skipped_link_types),
    counts={
        COUNTS[SPONSORED]: "links that are not followed because all links of their page to the target say `sponsored`",
        COUNTS[UGC]: "the same of `ugc`",
        COUNTS[NOFOLLOW]: "the same of `nofollow`, to the page's own owner",
        COUNTS[NOFOLLOW_ELSEWHERE]: "the same of `nofollow`, to other owners",
    },
)

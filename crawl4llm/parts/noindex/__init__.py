"""Noindex: what becomes of pages that ask to be kept out of indexes."""

from dataclasses import dataclass
from typing import Final

from crawl4llm.base.reasons import NOINDEX
from crawl4llm.base.settings import fixed, one_of
from crawl4llm.parts.part import Declaration

COUNT, ARCHIVE, DROP = "count", "archive", "drop"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    noindex: str = fixed(COUNT, one_of(COUNT, ARCHIVE, DROP))
    """Pages that say `noindex`, and that no export has, are pages like others (`count`), are archived without counting
    to `CRAWL_MAX_PAGES` (`archive`), or are dropped as `noindex` (`drop`). Their links are followed in any case, unless
    they say `nofollow` too ([opt-outs.md](opt-outs.md#noindex)). The live profile has `drop`."""


DECLARED: Final = Declaration(
    "noindex",
    "NOINDEX",
    "crawl4llm.parts.noindex.work.NoindexPages",
    asked=lambda options: options.noindex != COUNT,
    reasons={NOINDEX: "NOINDEX = drop: the page asks to be kept out of indexes; its links are followed"},
    counts={
        "pages/uncounted": "crawled pages that do not count to CRAWL_MAX_PAGES, because they say `noindex` "
        "(NOINDEX = archive)"
    },
)

"""Noindex: the treatment of pages that ask not to be indexed."""

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
    """Pages that say `noindex`, which no export includes, are treated like others (`count`), are archived without
    counting towards `CRAWL_MAX_PAGES` (`archive`), or are dropped as `noindex` (`drop`). Their links are followed in
    any case, unless they also say `nofollow` ([opt-outs.md](opt-outs.md#noindex)). The live profile has `drop`."""


DECLARED: Final = Declaration(
    "noindex",
    "NOINDEX",
    "crawl4llm.parts.noindex.work.NoindexPages",
    asked=lambda options: options.noindex != COUNT,
    reasons={NOINDEX: "NOINDEX = drop: the page asks not to be indexed; its links are followed"},
    counts={
        "pages/uncounted": "crawled pages that do not count towards CRAWL_MAX_PAGES, because they say `noindex` "
        "(NOINDEX = archive)"
    },
)

"""Makes pages that ask not to be indexed worthless (NOINDEX).

No export includes them. So they do not count towards N, earn no budget, and are worthless to policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from crawl4llm.base.errors import Why
from crawl4llm.base.reasons import NOINDEX
from crawl4llm.parts.noindex import ARCHIVE
from crawl4llm.parts.part import Part, Rated, Refusal

_REFUSAL: Final = Refusal(NOINDEX, Why("NOINDEX drop"))


class NoindexPages(Part):
    """See the module."""

    name = "noindex"

    def identity(self) -> Mapping[str, Any]:
        return {"noindex": self.options.noindex}

    def rated(self, place: int, page: Rated) -> None:
        page.is_counted = not page.noindex
        if self.options.noindex == ARCHIVE:
            page.line["noindex"] = page.noindex
        elif page.noindex:
            page.dropped = _REFUSAL

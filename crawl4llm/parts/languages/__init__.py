"""Languages: which translations of pages are crawled."""

import re
from dataclasses import dataclass
from typing import Any, Final

from crawl4llm.base.reasons import LANGUAGE
from crawl4llm.base.settings import fixed, words
from crawl4llm.parts.part import Declaration

_RANGE: Final = re.compile(r"[a-z]{1,8}(-[a-z0-9]{1,8})*")
"""A basic language range (RFC 4647, 2.1) except ``*``, because an empty setting means any language."""


def _ranges(value: Any) -> tuple[str, ...]:
    """Check language ranges: a sequence, or a text divided by commas."""
    given = tuple(dict.fromkeys(word.lower() for word in words(value)))
    if wrong := next((one for one in given if not _RANGE.fullmatch(one)), None):
        raise ValueError(f"has {wrong!r}; a language must be written like en or pt-BR")
    return given


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    crawl_languages: tuple[str, ...] = fixed((), _ranges)
    """Languages of the translations that are crawled, divided by commas, such as `en,pt-BR`; `en` includes `en-GB`. A
    page whose `hreflang` says that it is in others is dropped as `language`, and links to such pages are not followed
    ([scope.md](scope.md#translations)). Empty: all. The live profile has `en`."""


DECLARED: Final = Declaration(
    "languages",
    "CRAWL_LANGUAGES",
    "crawl4llm.parts.languages.work.Languages",
    asked=lambda options: bool(options.crawl_languages),
    reasons={LANGUAGE: "the page says by `hreflang` that it is in a language that CRAWL_LANGUAGES does not have"},
    counts={
        "links/language": "links that are not followed: to a language that CRAWL_LANGUAGES does not have, as their "
        "page says, or within the owner of a page dropped as `language`"
    },
)

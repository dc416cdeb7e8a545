"""Scope: which links, redirects and seeds are followed, by domain, scheme and kind of file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from crawl4llm.base.domain_lists import domain_of_line
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.expressions import expressions
from crawl4llm.base.reasons import DENIED, OFF_SCOPE
from crawl4llm.base.settings import fixed, flag, one_of, text, words
from crawl4llm.parts.part import Declaration

FILE_TYPES: Final = {
    "images": "png jpg jpeg jpe gif webp avif svg svgz ico bmp tif tiff heic psd",
    "media": "mp3 m4a aac ogg oga ogv opus wav flac wma mid mp4 m4v mov avi mkv webm wmv flv mpg mpeg 3gp swf fla rm "
    "ram m3u m3u8",
    "archives": "zip tar gz tgz bz2 tbz xz txz 7z rar zst lz lzma z cab jar war sit sitx hqx",
    "documents": "pdf ps eps doc docx xls xlsx ppt pptx odt ods odp rtf epub mobi djvu",
    "programs": "exe msi dmg iso deb rpm apk pkg bin whl appimage",
    "assets": "css woff woff2 ttf otf eot",
    "feeds": "rss atom",
}
"""Endings of file names, by kind, that are not pages. Endings that pages often have are left out: ``.js`` ends names of
libraries, ``.py`` and ``.md`` pages of forges, ``.xml`` and ``.json`` may be anything."""
_ENDING = re.compile(r"\.[a-z0-9]{1,8}")


def _domains(value: Any) -> tuple[str, ...]:
    """Check domains, suffixes and, with a slash, paths of files: a sequence, or a text divided by commas."""
    wanted = "must be domains, like example.com, or files, like ./domains.txt"
    with as_input_error(wanted, ValueError, errors=InputError):
        names = [
            text(one) if "/" in one and "://" not in one else domain_of_line(one, suffixes=True) for one in words(value)
        ]
    return tuple(dict.fromkeys(names))


def _file_types(value: Any) -> tuple[str, ...]:
    """Check names of FILE_TYPES, and endings with a dot: a sequence, or a text divided by commas."""
    named = [word.lower() for word in words(value)]
    for word in named:
        if word not in FILE_TYPES and not _ENDING.fullmatch(word):
            raise ValueError(f"has {word!r}; known are: {', '.join(FILE_TYPES)}, and endings like .pdf")
    return tuple(dict.fromkeys(named))


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Settings:
    """Its settings."""

    crawl_scope: str = fixed("web", one_of("web", "domain"))
    """Links that are followed: all, or (`domain`) those within the registrable domain of their page, so that the crawl
    never leaves the domain of a seed."""
    scope_domains: tuple[str, ...] = fixed((), _domains)
    """Domains with their subdomains, and suffixes, such as `edu,ac.uk,example.org`, or paths of files of them (with a
    slash: `./domains.txt`), divided by commas: nothing else is crawled ([scope.md](scope.md)). Empty: all."""
    scope_https_only: bool = fixed(False, flag)
    """Crawl `https` only."""
    scope_skipped_types: tuple[str, ...] = fixed((), _file_types)
    """Kinds of files that are not crawled, by the ending of their names, divided by commas: `images`, `media`,
    `archives`, `documents`, `programs`, `assets`, `feeds`, and endings like `.pdf`
    ([scope.md](scope.md#file-types))."""
    scope_deny: tuple[str, ...] = fixed((), expressions)
    """Regular expressions, or paths of files of them (`./deny.txt`), divided by commas: links and redirects to URLs
    that contain a match are dropped as `denied` ([scope.md](scope.md#expressions)). Seeds are not. Empty: none."""
    scope_allow: tuple[str, ...] = fixed((), expressions)
    """Exceptions to `SCOPE_DENY` and `SITE_RULES`, in the same form. A URL that contains a match is not dropped."""


def has_rules(options: Settings) -> bool:
    """Return whether settings have rules for URLs."""
    return bool(options.scope_domains or options.scope_https_only or options.scope_skipped_types)


DECLARED: Final = Declaration(
    "scope",
    "CRAWL_SCOPE",
    "crawl4llm.parts.scope.work.ScopePart",
    asked=lambda options: options.crawl_scope != "web" or has_rules(options) or bool(options.scope_deny),
    counts={
        "links/off_scope": "links that CRAWL_SCOPE forbids to follow",
        "links/scheme": "links that SCOPE_HTTPS_ONLY forbids to follow",
        "links/file_type": "links that SCOPE_SKIPPED_TYPES forbids to follow",
        "links/domain": "links that SCOPE_DOMAINS forbids to follow",
    },
    reasons={
        OFF_SCOPE: "a seed that SCOPE_DOMAINS, SCOPE_HTTPS_ONLY or SCOPE_SKIPPED_TYPES forbid; live: a redirect "
        "that these or CRAWL_SCOPE forbid",
        DENIED: "an expression of SCOPE_DENY is found in its URL",
    },
)

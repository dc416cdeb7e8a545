"""The settings that say what a crawl follows; the other fields of the table are in :mod:`crawl4llm.options`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from crawl4llm.base.domain_lists import domain_of_line
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path
from crawl4llm.base.url_traps import RULES
from crawl4llm.option_checks import fixed, flag, one_of, option, optional_text, some_of, text, whole

OFF, FOLLOW, LEAVE = "off", "follow", "leave"
"""Of NEAR_DUPLICATES."""

FILE_TYPES: Final = {
    "images": "png jpg jpeg jpe gif webp avif svg svgz ico bmp tif tiff heic psd",
    "media": "mp3 m4a aac ogg oga ogv opus wav flac wma mid mp4 m4v mov avi mkv webm wmv flv mpg mpeg 3gp swf fla rm "
    "ram m3u m3u8",
    "archives": "zip tar gz tgz bz2 tbz xz txz 7z rar zst lz lzma z cab jar war sit sitx hqx",
    "documents": "pdf ps eps doc docx xls xlsx ppt pptx odt ods odp rtf epub mobi djvu",
    "programs": "exe msi dmg iso deb rpm apk pkg bin whl appimage",
    "assets": "css woff woff2 ttf otf eot",
}
"""Endings of file names by kind, of what is no page. Left out are those that pages often have: ``.js`` ends names of
libraries, ``.py`` and ``.md`` what forges show as pages, ``.xml`` and ``.json`` may be anything."""
_ENDING = re.compile(r"\.[a-z0-9]{1,8}")


def _list(value: Any) -> list[str]:
    """Return the parts of a text divided by commas, or of a sequence."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple):
        raise ValueError("must be a list, divided by commas")  # noqa: TRY004 - the one kind of error that checks raise
    return [word for word in (str(one).strip() for one in given) if word]


def _files(value: Any) -> tuple[str, ...]:
    """Take paths of files, divided by commas, or a sequence of them."""
    return tuple(dict.fromkeys(str(given_path(text(one))) for one in _list(value)))


def _domains(value: Any) -> tuple[str, ...]:
    """Take domains, suffixes and, with a slash in them, paths of files, divided by commas, or a sequence of them."""
    try:
        names = [
            text(one) if "/" in one and "://" not in one else domain_of_line(one, suffixes=True) for one in _list(value)
        ]
    except InputError as error:
        raise ValueError(f"must be domains, like example.com, or files, like ./domains.txt: {error}") from None
    return tuple(dict.fromkeys(names))


def _file_types(value: Any) -> tuple[str, ...]:
    """Take names of FILE_TYPES, and endings with a dot, divided by commas, or a sequence of them."""
    words = [word.lower() for word in _list(value)]
    for word in words:
        if word not in FILE_TYPES and not _ENDING.fullmatch(word):
            raise ValueError(f"has {word!r}; known are: {', '.join(FILE_TYPES)}, and endings like .pdf")
    return tuple(dict.fromkeys(words))


@dataclass(frozen=True, kw_only=True)
class ScopeOptions:
    """The checked values of settings for links, owners and URLs that are left alone."""

    crawl_scope: str = fixed(
        "web",
        one_of("web", "domain"),
        "Links that are followed: all, or (`domain`) those within the registrable domain of the page they are on, so "
        "that no seed's crawl leaves its domain.",
    )
    scope_domains: tuple[str, ...] = fixed(
        (),
        _domains,
        "Domains, with all below them, and suffixes, such as `edu,ac.uk,example.org`, or paths of files of them (with "
        "a slash: `./domains.txt`), divided by commas: nothing else is crawled ([scope.md](scope.md)). Empty: all.",
    )
    scope_https_only: bool = fixed(False, flag, "Whether only `https` is crawled.")
    scope_skipped_types: tuple[str, ...] = fixed(
        (),
        _file_types,
        "Kinds of files that are not crawled, by the ending of their names, divided by commas: "
        f"{', '.join(f'`{name}`' for name in FILE_TYPES)}, and endings like `.pdf` ([scope.md](scope.md#file-types)).",
    )
    blocklists: tuple[str, ...] = option(
        (),
        _files,
        "Files of domains, divided by commas: nothing is sent to these and all below them. Live crawls with `JOBDIR` "
        "read them again when they change ([scope.md](scope.md#block-lists)).",
    )
    known_urls: tuple[str, ...] = option(
        (),
        _files,
        "Sets of URLs that `scrapy corpus known` has made, or lists of them, divided by commas: what pages lead to is "
        "dropped as `known_url` where they have it ([novelty.md](novelty.md#known-urls)). Seeds are not.",
    )
    opt_out_fetch: bool = option(
        False,
        flag,
        "Live crawls: whether pages are fetched and archived that may not be trained on; they are marked and never "
        "exported ([opt-outs.md](opt-outs.md)).",
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
        "Whether the text of each page is compared with those of the last 262,144 new pages. Pages that are like an "
        "earlier one are counted and noted. Their links are followed (`follow`), or not (`leave`) "
        "([traps.md](traps.md#near-duplicates)). The live profile has `follow`.",
    )
    known_texts: str | None = option(
        None,
        optional_text,
        "Path of a file of texts that you have already, made by `scrapy corpus known`. Pages with such a text, or "
        "nearly, are counted and noted; the crawl visits places with such pages last "
        "([novelty.md](novelty.md#known-texts)).",
    )

    mixture: str | None = option(
        None,
        optional_text,
        "Path of a JSON file with classifiers of texts, and the wanted share of each of their classes among the pages. "
        "The class furthest below its share is crawled next ([mixture.md](mixture.md)).",
    )

    @property
    def compares_texts(self) -> bool:
        """Whether the text of each page is looked at for whether it is new."""
        return self.known_texts is not None or self.near_duplicates != OFF

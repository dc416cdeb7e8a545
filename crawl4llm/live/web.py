"""The live web in the place of a corpus: what there is to say of it before anything is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from scrapy.settings import BaseSettings

from crawl4llm.base.errors import InputError, MissingRecord
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.base.urls import host_of, normalise_url
from crawl4llm.options import Options
from crawl4llm.policies import Policy
from simulate.warcs.files import LIVE

MIDDLEWARE = "crawl4llm.live.fetching.Fetching"
"""The downloader middleware that makes a crawl live; settings/live.py has it."""


class LiveWeb:
    """Any http or https URL is a document, its normalised URL the key; nothing can be looked up."""

    name = LIVE

    def is_key(self, text: str) -> bool:
        """Whether ``text`` is a normalised URL of the web."""
        return text.startswith(("http://", "https://")) and host_of(text) != "" and normalise_url(text) == text

    def resolve(self, url: str) -> str | None:
        """The key of a URL; None for one that is not of the web."""
        key = normalise_url(url)
        return key if self.is_key(key) else None

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.is_key(key)

    def identity(self) -> str:
        """There is but one."""
        return self.name

    def check(self) -> None:
        """Nothing to check."""

    def require(self, *parts: str) -> None:
        """Raise InputError for anything but what each page brings."""
        for part in parts:
            if part not in {"html", "outlinks"}:
                raise InputError(f"a live crawl cannot know the {part} of a page before it is fetched")

    def close(self) -> None:
        """Nothing to close."""

    def __len__(self) -> int:
        return 0

    def keys(self) -> Iterator[str]:
        """None that are known."""
        return iter(())

    def sample(self, n: int, seed: int) -> list[str]:
        """Raises InputError: nobody can draw from the web."""
        raise InputError("a live crawl needs seeds; give a file with one URL a line: -a seeds=FILE")

    def page(self, key: str) -> PageRecord:
        """Raises MissingRecord, as all look-ups do."""
        _not_held(key)

    def text(self, key: str) -> str:
        """See :meth:`page`."""
        _not_held(key)

    def html(self, key: str) -> bytes:
        """See :meth:`page`."""
        _not_held(key)

    def outlinks(self, key: str) -> list[Link]:
        """See :meth:`page`."""
        _not_held(key)

    def inlinks(self, key: str) -> list[Link]:
        """See :meth:`page`."""
        _not_held(key)


def _not_held(key: str) -> NoReturn:
    raise MissingRecord(f"{key} is on the live web; it can only be fetched")


def is_live(settings: BaseSettings) -> bool:
    """Whether the settings are for a live crawl. Raises InputError where they contradict each other."""
    live = MIDDLEWARE in settings.getdict("DOWNLOADER_MIDDLEWARES")
    corpus = settings.get("CORPUS")
    if live and corpus:
        raise InputError(f"CORPUS {corpus} is for simulations; leave it out, or SCRAPY_PROJECT=live")
    if not live and not corpus:
        raise InputError(
            "CORPUS is not set; set CORPUS=demo, or a path; to crawl the live web, start with SCRAPY_PROJECT=live"
        )
    return live


def check_policy(policy: type[Policy], options: Options) -> None:
    """Raise InputError for an order that needs to look pages up."""
    if options.hot_queue_topic:
        raise InputError(
            "HOT_QUEUE_TOPIC looks pages up after they were crawled, and a live crawl cannot; leave it out"
        )
    if policy.looks_ahead:
        why = "scores a page by what is on it, before it is fetched"
    elif needed := [part for part in policy.corpus_parts if part not in {"html", "outlinks"}]:
        why = f"needs the {' and '.join(needed)} of pages before they are fetched"
    else:
        return
    raise InputError(
        f"URL_POLICY {options.url_policy} {why}, and a live crawl cannot; choose another, such as parent_first"
    )

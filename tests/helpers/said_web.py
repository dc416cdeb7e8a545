"""Webs whose links and pages say what they are: ``rel``, ``hreflang``, alternates and ``noindex``."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from cluster_helpers import HostsCorpus, random_web

from crawl4llm.base.page_heads import PageHead
from crawl4llm.base.pages import Link, PageRecord

RULES: dict[str, Any] = {"skipped_link_types": ("nofollow", "ugc", "sponsored"), "crawl_languages": ("en",)}


class SaidCorpus(HostsCorpus):
    """A web in which pages say, at random, that they are in German or English, and that no index should have them."""

    def page(self, key: str) -> PageRecord:
        page, draw = super().page(key), random.Random(key)
        language = draw.choice(["", "", "", "", "de", "en", "x-default"])
        alternates = ((language, page.url), ("fr", self.url("x1a"))) if language else ()
        return replace(page, noindex=draw.random() < 0.2, head=PageHead(alternates=alternates))

    def _outlinks(self, key: str) -> list[Link]:
        draw = random.Random(key)
        rels, languages = ["", "", "", "nofollow", "ugc", "nofollow sponsored"], ["", "", "", "en-gb", "de"]
        return [
            link._replace(rel=draw.choice(rels), language=draw.choice(languages)) for link in super()._outlinks(key)
        ]


def said_web(seed: int, documents: int = 120) -> SaidCorpus:
    """The web of that seed, with more to say."""
    web = random_web(seed, documents)
    return SaidCorpus(web._links, web.texts, corrupt=sorted(web.corrupt))

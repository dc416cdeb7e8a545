"""``scrapy corpus``: look at the corpus that ``CORPUS`` names, and prepare it."""

from __future__ import annotations

from typing import ClassVar

from crawl4llm.tools._action import ActionCommand


class Command(ActionCommand):
    """One action each of :mod:`crawl4llm.tools.corpus`."""

    name = "corpus"
    actions: ClassVar = {
        "show": "crawl4llm.tools.corpus.actions.SHOW",
        "sample": "crawl4llm.tools.corpus.actions.SAMPLE",
        "index": "crawl4llm.tools.corpus.actions.INDEX",
        "demo": "crawl4llm.tools.corpus.actions.DEMO",
        "build": "crawl4llm.tools.corpus.actions.BUILD",
        "ranks": "crawl4llm.tools.corpus.actions.RANKS",
        "bound": "crawl4llm.tools.evaluate.bound.BOUND",
        "known": "crawl4llm.tools.corpus.known.KNOWN",
    }

    def short_desc(self) -> str:
        return "Show, sample, index or build the corpus"

    def long_desc(self) -> str:
        return f"{self.short_desc()} that CORPUS names (-s CORPUS=PATH)."

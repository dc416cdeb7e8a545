"""``scrapy corpus``: look at the corpus that ``CORPUS`` names, and prepare it."""

from __future__ import annotations

from crawl4llm.tools import corpus as corpus_actions
from crawl4llm.tools._action import ActionCommand


class Command(ActionCommand):
    """One action each of :mod:`crawl4llm.tools.corpus`."""

    name = "corpus"
    package = corpus_actions.__name__
    actions = corpus_actions.ACTIONS

    def short_desc(self) -> str:
        return "Show, sample, index or build the corpus"

    def long_desc(self) -> str:
        return f"{self.short_desc()} that CORPUS names (-s CORPUS=PATH)."

"""``scrapy cluster``: look at a crawl by several workers, and write it as one run folder."""

from __future__ import annotations

from typing import ClassVar

from crawl4llm.tools._action import ActionCommand


class Command(ActionCommand):
    """One action each of :mod:`crawl4llm.tools.cluster`."""

    name = "cluster"
    actions: ClassVar = {
        "status": "crawl4llm.tools.cluster.STATUS",
        "drain": "crawl4llm.tools.cluster.DRAIN_WORKER",
        "stop": "crawl4llm.tools.cluster.STOP_ALL",
        "verify": "crawl4llm.tools.cluster.VERIFY",
        "compact": "crawl4llm.tools.cluster.COMPACT",
        "merge": "crawl4llm.tools.cluster.MERGE",
    }

    def short_desc(self) -> str:
        return "Look at a crawl by several workers, stop it, or merge it into one run folder"

    def long_desc(self) -> str:
        return f"{self.short_desc()}. STORAGE is its s3://BUCKET/FOLDER or file:///FOLDER."

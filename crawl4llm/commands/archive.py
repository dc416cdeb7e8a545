"""``scrapy archive``: make a crawl's archive a dataset, check it, repair it, remove domains that opted out."""

from __future__ import annotations

from typing import ClassVar

from crawl4llm.tools._action import ActionCommand


class Command(ActionCommand):
    """One action each of :mod:`crawl4llm.tools.archive`."""

    name = "archive"
    actions: ClassVar = {
        "finish": "crawl4llm.tools.archive.check.FINISH",
        "check": "crawl4llm.tools.archive.check.CHECK",
        "repair": "crawl4llm.tools.archive.removal.REPAIR",
        "purge": "crawl4llm.tools.archive.removal.PURGE",
    }

    def short_desc(self) -> str:
        return "Finish, check or repair an archive, or purge a domain from it"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. DIR is the OUTPUT_DIR of a crawl or a folder of WARC files; check also takes a "
            f"storage."
        )

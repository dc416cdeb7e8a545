"""``scrapy archive``: make a crawl's archive a dataset, check it, repair it, take out who opted out."""

from __future__ import annotations

from crawl4llm.tools._action import ActionCommand
from crawl4llm.tools.archive import actions as archive_actions


class Command(ActionCommand):
    """One action each of :mod:`crawl4llm.tools.archive.actions`."""

    name = "archive"
    package = archive_actions.__name__
    actions = archive_actions.ACTIONS

    def short_desc(self) -> str:
        return "Finish, check or repair an archive, or purge a domain from it"

    def long_desc(self) -> str:
        return f"{self.short_desc()}. DIR is the OUTPUT_DIR of a crawl, or a folder of WARC files."

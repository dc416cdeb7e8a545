"""Shared by the commands that show pages of the corpus through Scrapy: ``fetch``, ``view``, ``shell`` and others."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.terminal import complain, guard_log

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings, Settings


def hide_versions(settings: BaseSettings) -> None:
    """Keep Scrapy's list of versions out of the log, unless that is asked for: settings.json has those that matter, and
    `scrapy version -v` all. A level would not do: Scrapy resets it."""
    # here, as Scrapy imports every command to run one
    from crawl4llm.engine import asks_for_log

    if not asks_for_log(settings):
        logging.getLogger("scrapy.utils.log").addFilter(lambda record: record.levelno >= logging.WARNING)


class Visiting:
    """Runs a command of Scrapy's with the pages of the corpus; an error is one line, and status 1.

    It is no ScrapyCommand itself: Scrapy would take it for one.
    """

    settings: Settings | None
    exitcode: int

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Take Scrapy's options; its list of versions would precede the error."""
        super().process_options(args, opts)  # type: ignore[misc]  # of the command
        assert self.settings is not None
        hide_versions(self.settings)

    def visit(
        self,
        run: Callable[[list[str], argparse.Namespace], None],
        args: list[str],
        opts: argparse.Namespace,
        given: str | None = None,
    ) -> None:
        """Run Scrapy's command; with the URL of a document, if one is given by id or URL, as its argument."""
        # here, as Scrapy imports every command to run one
        from crawl4llm.engine import asks_for_log, prepare

        guard_log()
        assert self.settings is not None
        try:
            url = prepare(self.settings, given, getattr(opts, "spider", None))
        except (InputError, PageError) as error:
            complain(error)
            self.exitcode = 1
            return
        if given is not None and not asks_for_log(self.settings):
            logging.getLogger("scrapy").setLevel(logging.WARNING)  # the page is asked for, not what makes it
        run(args if url is None else [url], opts)

"""``scrapy dashboard``: a crawl as a page in the browser, while it runs and afterwards."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.base.command_lines import usage
from crawl4llm.base.object_store import is_storage
from crawl4llm.base.terminal import print_lines


class Command(ScrapyCommand):
    """Serves :mod:`crawl4llm.tools.dashboard` until Ctrl-C."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "CRAWL|JOBDIR|STORAGE [--port N] [--no-browser]"

    def short_desc(self) -> str:
        return "Show a crawl as a page in the browser, while it runs and afterwards"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. CRAWL is its OUTPUT_DIR; given its JOBDIR, the page shows the frontier too. Only "
            f"this machine reaches the page, at the printed address; Ctrl-C ends it."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        group = parser.add_argument_group("dashboard")
        group.add_argument("--port", metavar="N", type=int, default=0, help="port of 127.0.0.1 (default: a free one)")
        group.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Serve until Ctrl-C; exit status 0 then, and 1 if there is nothing to serve."""
        if len(args) != 1 or args[0].startswith("-"):
            raise UsageError(f"usage: {usage('dashboard', self.syntax())}", print_help=False)

        self.exitcode = print_lines(self._lines(args[0], opts))

    def _lines(self, path: str, opts: argparse.Namespace) -> Iterator[str]:
        # here, as Scrapy imports every command to run one
        from crawl4llm.tools.dashboard.server import Dashboard
        from crawl4llm.tools.dashboard.watch import open_crawl

        assert self.settings is not None
        opened = partial(open_crawl, path, self.settings)
        with Dashboard(opened(), opts.port) as server:
            if is_storage(path):
                threading.Thread(target=server.follow, args=(opened,), daemon=True).start()
            yield f"Dashboard of {path}: {server.url}  (Ctrl-C ends it)"
            sys.stdout.flush()
            if not opts.no_browser and (sys.platform == "darwin" or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()):
                webbrowser.open(server.url)  # elsewhere it might be one for terminals, in this one
            with suppress(KeyboardInterrupt):
                server.serve_forever()

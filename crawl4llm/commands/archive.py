"""``scrapy archive``: make a crawl's archive a dataset, check it, repair it, take out who opted out."""

from __future__ import annotations

import argparse
from typing import Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.archive_actions import ACTIONS, load_action
from crawl4llm.terminal import print_lines


class Command(ScrapyCommand):
    """Hands over to one of :mod:`crawl4llm.archive_actions` and prints the lines it yields."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return f"{{{','.join(ACTIONS)}}} [options]"

    def short_desc(self) -> str:
        return "Finish, check or repair an archive, or purge a domain from it"

    def long_desc(self) -> str:
        return f"{self.short_desc()}. DIR is the OUTPUT_DIR of a crawl, or a folder of WARC files."

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        for name in ACTIONS:
            action = load_action(name)
            action.add_options(
                parser.add_argument_group(name, f"scrapy archive {name} {action.ARGUMENTS}: {action.HELP}")
            )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the action that the first argument names; exit status 0 only when its work was done."""
        assert self.settings is not None
        unknown = [arg for arg in args if arg.startswith("-")]
        if unknown:
            raise UsageError(f"unknown option {unknown[0]}", print_help=False)
        if not args or args[0] not in ACTIONS:
            raise UsageError(f"say what to do: one of {', '.join(ACTIONS)}", print_help=False)
        action = load_action(args[0])
        if len(args) - 1 != len(action.ARGUMENTS.split()):
            raise UsageError(f"usage: scrapy archive {args[0]} {action.ARGUMENTS}", print_help=False)
        opts.arguments = args[1:]
        self.exitcode = print_lines(action.run(self.settings, opts))

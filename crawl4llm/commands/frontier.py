"""``scrapy frontier``: look at the crawl in a JOBDIR, and change it while it is paused."""

from __future__ import annotations

import argparse
from typing import ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.base.command_lines import command, usage
from crawl4llm.base.errors import InputError
from crawl4llm.base.object_store import is_storage
from crawl4llm.base.terminal import add_json_option
from crawl4llm.tools._action import Action, ActionCommand

_SHOW = "show"  # the action where no other is asked for
_OF_STORAGES = ("block", "unblock")
"""Actions that take a storage too."""


class Command(ActionCommand):
    """One action each of :mod:`crawl4llm.tools.frontier`, which an option of its name asks for."""

    name = "frontier"
    actions: ClassVar = {
        _SHOW: "crawl4llm.tools.frontier.SHOW",
        "verify": "crawl4llm.tools.frontier.VERIFY",
        "export": "crawl4llm.tools.frontier.EXPORT",
        "compact": "crawl4llm.tools.frontier.change.COMPACT",
        "inject": "crawl4llm.tools.frontier.change.INJECT",
        "purge": "crawl4llm.tools.frontier.change.PURGE",
        "block": "crawl4llm.tools.frontier.change.BLOCK",
        "unblock": "crawl4llm.tools.frontier.change.UNBLOCK",
    }

    def syntax(self) -> str:
        return "JOBDIR|STORAGE [options]"

    def short_desc(self) -> str:
        return "Show, check or change the frontier of a crawl with JOBDIR"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}: documents by state and host, the best documents, leases. Without an option it is "
            f"shown, even while the crawl runs. For a storage (s3://BUCKET/FOLDER, file:///FOLDER) it shows "
            f"the largest partitions; --block and --unblock take one too."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        ScrapyCommand.add_options(self, parser)
        add_json_option(parser)
        group = parser.add_argument_group("frontier")
        for name in self.actions:
            action = self.load(name)
            if action.arguments:
                group.add_argument(f"--{name}", metavar=action.arguments, help=action.help)
            elif name != _SHOW:
                group.add_argument(f"--{name}", action="store_true", help=action.help)
            action.add_options(group)

    def choose(self, args: list[str], opts: argparse.Namespace) -> tuple[Action, list[str]]:
        if len(args) != 1:
            raise UsageError(f"usage: {usage('frontier', self.syntax())}", print_help=False)
        given = [name for name in self.actions if getattr(opts, name, None) not in {None, False}]
        if len(given) > 1:
            raise InputError(f"--{given[0]} and --{given[1]} were given; give one, then the other")
        if given and is_storage(args[0]) and given[0] not in _OF_STORAGES:
            verify = f"use {command('cluster', 'verify', args[0])}"
            other = verify if given == ["verify"] else "its frontier is with its workers"
            raise InputError(f"--{given[0]} takes a JOBDIR, and {args[0]} is a storage: {other}")
        action = self.load(given[0] if given else _SHOW)
        return action, [*args, getattr(opts, given[0])] if action.arguments else args

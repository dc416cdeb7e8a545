"""Scrapy commands of several actions: ``scrapy corpus show KEY``, ``scrapy frontier JOBDIR --verify``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.utils.misc import load_object

from crawl4llm.base.command_lines import usage
from crawl4llm.base.tables import Part
from crawl4llm.base.terminal import add_json_option, add_tasks_option, harmless, positive_integer, print_lines

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


class Action(NamedTuple):
    """One thing that a command can do."""

    help: str
    """One sentence: what it does."""
    run: Callable[[BaseSettings, argparse.Namespace], Iterator[Part]]
    """Does the work and yields the output; ``opts.arguments`` has the arguments, ``opts.ACTION_OPTION`` the values of
    options. Raises InputError and PageError."""
    arguments: str = ""
    """The names of its arguments, divided by spaces; empty if it takes none. With ``...`` behind it there may be
    several of the last."""
    add_options: Callable[[argparse._ArgumentGroup], None] = lambda _group: None
    """Adds the action's options, whose names no other action of the command has."""


def add_work_options(parser: argparse._ArgumentGroup) -> None:
    """Add ``--jobs`` and ``--tasks``, for the actions of a command that divide their work."""
    told = "number of processes (default: as many as pay off, at most one per core)"
    parser.add_argument("--jobs", type=positive_integer, metavar="N", help=told)
    add_tasks_option(parser)


class ActionCommand(ScrapyCommand):
    """Hands over to the action that the first argument names and prints the lines it yields."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    name: ClassVar[str]
    """The name of the command."""
    actions: ClassVar[Mapping[str, str]]
    """Dotted paths of its actions, by name; none is imported before the command runs."""

    def syntax(self) -> str:
        return f"{{{','.join(self.actions)}}} [options]"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_json_option(parser)
        for name in self.actions:
            action = self.load(name)
            title = f"{usage(self.name, name, action.arguments)}: {action.help}"
            action.add_options(parser.add_argument_group(name, title))

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the action that is asked for; exit status 0 only when its work was done."""
        unknown = [arg for arg in args if arg.startswith("-")]
        if unknown:
            raise UsageError(f"unknown option {unknown[0]}", print_help=False)
        self.exitcode = print_lines(self._lines(args, opts), as_json=opts.json)

    def _lines(self, args: list[str], opts: argparse.Namespace) -> Iterator[Part]:
        assert self.settings is not None
        action, opts.arguments = self.choose(args, opts)
        yield from action.run(self.settings, opts)

    def choose(self, args: list[str], opts: argparse.Namespace) -> tuple[Action, list[str]]:
        """Return the action that is asked for, and its arguments. Raises UsageError and InputError."""
        if not args or args[0] not in self.actions:
            near = "".join(f" (did you mean {one}?)" for one in get_close_matches("".join(args[:1]), self.actions, 1))
            unknown = f"{harmless(args[0])} is not known{near}; " if args else ""
            raise UsageError(f"{unknown}give an action: one of {', '.join(self.actions)}", print_help=False)
        action = self.load(args[0])
        missing = len(action.arguments.split()) - (len(args) - 1)
        if missing > 0 or (missing < 0 and not action.arguments.endswith("...")):
            raise UsageError(f"usage: {usage(self.name, args[0], action.arguments)}", print_help=False)
        return action, args[1:]

    def load(self, name: str) -> Action:
        """Import an action."""
        action: Action = load_object(self.actions[name])
        return action

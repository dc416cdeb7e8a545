"""Scrapy commands of several actions: ``scrapy corpus show KEY``, ``scrapy archive check DIR``.

An action is a module of the command's package of actions, which lists their names in ``ACTIONS``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.base.terminal import print_lines

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


class Action(Protocol):
    """A module that is an action."""

    HELP: str
    """One sentence: what it does."""
    ARGUMENTS: str
    """The names of its arguments, divided by spaces; empty where it takes none."""

    def add_options(self, parser: argparse._ArgumentGroup) -> None:
        """Add the action's options, whose names no other action has."""
        ...

    def run(self, settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
        """Do the work and yield the lines to print; ``opts.arguments`` has the arguments.

        Raises InputError and PageError.
        """
        ...


class ActionCommand(ScrapyCommand):
    """Hands over to an action and prints the lines it yields."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    name: ClassVar[str]
    """Of the command."""
    package: ClassVar[str]
    """Dotted path of the package of its actions; nothing of it is imported before the command runs."""
    actions: ClassVar[Sequence[str]]

    def syntax(self) -> str:
        return f"{{{','.join(self.actions)}}} [options]"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        for name in self.actions:
            action = self._load(name)
            action.add_options(parser.add_argument_group(name, f"{self._usage(name, action)}: {action.HELP}"))

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the action that the first argument names; exit status 0 only when its work was done."""
        assert self.settings is not None
        unknown = [arg for arg in args if arg.startswith("-")]
        if unknown:
            raise UsageError(f"unknown option {unknown[0]}", print_help=False)
        if not args or args[0] not in self.actions:
            raise UsageError(f"say what to do: one of {', '.join(self.actions)}", print_help=False)
        action = self._load(args[0])
        if len(args) - 1 != len(action.ARGUMENTS.split()):
            raise UsageError(f"usage: {self._usage(args[0], action)}", print_help=False)
        opts.arguments = args[1:]
        self.exitcode = print_lines(action.run(self.settings, opts))

    def _load(self, name: str) -> Action:
        return cast(Action, import_module(f"{self.package}.{name}"))

    def _usage(self, name: str, action: Action) -> str:
        return f"scrapy {self.name} {name} {action.ARGUMENTS}".rstrip()

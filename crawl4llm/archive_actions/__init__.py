"""What ``scrapy archive`` can do: one module for each action.

To add one: a module here that has what :class:`Action` says, and its name in ``ACTIONS``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

ACTIONS: Final = ("finish", "check", "repair", "purge")


class Action(Protocol):
    """A module of this package."""

    HELP: str
    """One sentence: what it does."""
    ARGUMENTS: str
    """The names of its arguments, divided by spaces."""

    def add_options(self, parser: argparse._ArgumentGroup) -> None:
        """Add the action's options, whose names no other action has."""
        ...

    def run(self, settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
        """Do the work and yield the lines to print; ``opts.arguments`` has the arguments. Raises InputError."""
        ...


def load_action(name: str) -> Action:
    """The module of an action; nothing of it is imported before ``scrapy archive`` runs."""
    return cast(Action, import_module(f"{__name__}.{name}"))

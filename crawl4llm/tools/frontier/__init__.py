"""What ``scrapy frontier JOBDIR`` can do: one module for each action, which ``--NAME`` asks for.

To add one: a module here that has what :class:`Action` says, and its name in ``ACTIONS``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

SHOW: Final = "show"
"""What is done where no other action is asked for."""
ACTIONS: Final = ("verify", "export", "compact", "inject", "purge")


class Action(Protocol):
    """A module of this package."""

    def add_options(self, parser: argparse._ArgumentGroup) -> None:
        """Add the option that asks for the action, and those that belong to it."""
        ...

    def run(self, settings: BaseSettings, opts: argparse.Namespace) -> Iterator[str]:
        """Do the work on the crawl in ``opts.jobdir`` and yield the lines to print. Raises InputError."""
        ...


def load_action(name: str) -> Action:
    """The module of an action; nothing of it is imported before ``scrapy frontier`` runs."""
    return cast(Action, import_module(f"{__name__}.{name}"))

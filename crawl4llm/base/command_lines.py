"""Command lines that the program prints for people, quoted so that they can be pasted into a shell."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

_NAMES: Final = ("scrapy", "crawl4llm")
"""The programs that run the commands."""

_OF_COMMAND_LINE: Final = 40
"""Scrapy's priority of settings from the command line."""
_OF_ONE_CRAWL: Final = {"OUTPUT_DIR", "JOBDIR", "DRY_RUN"}
"""Settings that belong to one crawl only."""


class Settings(Protocol):
    """The part of Scrapy's settings that is used here."""

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""

    def __getitem__(self, name: str) -> Any:
        """Return a value."""

    def getpriority(self, name: str) -> int | None:
        """Return the priority of a setting, which tells where its value comes from."""


def command(*words: object, profile: str | None = None, simulation: bool = False, **settings: Any) -> str:
    """Return the command line of words and settings: ``scrapy explain ID --run 'my crawl'``.

    ``profile``: the settings profile of the command, by default that of the environment. For a ``simulation``,
    ``default`` replaces ``live``.
    """
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    profile = profile or os.environ.get("SCRAPY_PROJECT")
    profile = "default" if simulation and profile == "live" else profile
    prefix = [f"SCRAPY_PROJECT={shlex.quote(profile)}"] if profile else []
    return " ".join([*prefix, program(), *quoted([*words, *given])])


def index_command(corpus: object, *options: object, **settings: Any) -> str:
    """Return the command that indexes a corpus."""
    return command("corpus", "index", *options, simulation=True, CORPUS=corpus, **settings)


def merge_command(storage: str) -> str:
    """Return the command that makes a run folder from a storage, at a free place below ``crawls/``."""
    names = ("merged", *(f"merged-{number}" for number in range(2, 1000)))
    free = next((name for name in names if not Path("crawls", name).exists()), names[0])
    return command("cluster", "merge", storage, "--out", f"crawls/{free}")


def given_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings of the current command line that the next command needs too."""
    return {
        name: json.dumps(dict(value)) if isinstance(value := settings[name], Mapping) else value
        for name in settings
        if settings.getpriority(name) == _OF_COMMAND_LINE and name not in _OF_ONE_CRAWL
    }


def usage(*words: str) -> str:
    """Return how a command is used, by the program that was started: ``crawl4llm explain ID-or-URL``."""
    return " ".join([_name(), *words]).rstrip()


def docs(topic: str) -> str:
    """Return the command that shows a page of the documentation, by the page's name without ``.md``."""
    return f"crawl4llm docs {topic}"


def quoted(words: Iterable[object]) -> list[str]:
    """Return words quoted for a shell."""
    return [shlex.quote(str(word)) for word in words]


def program() -> str:
    """Return the program that was started, in a form that a shell finds.

    That is its name if it is on the path, otherwise its file or ``python -m``. A tool's installer may put only
    ``crawl4llm`` on the path. The programs of an environment that is not activated are not on it.
    """
    started = Path(sys.argv[0] if sys.argv else "")
    name, is_script = _name(), started.name in _NAMES
    script = started if is_script else Path(sys.executable).with_name(name)
    found = shutil.which(name)
    with suppress(OSError):
        if found is not None and Path(found).samefile(script):
            return name
    return shlex.quote(str(started.absolute())) if is_script else f"{shlex.quote(sys.executable)} -m {name}"


def _name() -> str:
    """Return the name of the program that was started."""
    started = Path(sys.argv[0] if sys.argv else "")
    name = started.parent.name if started.name == "__main__.py" else started.name
    return name if name in _NAMES else _NAMES[0]

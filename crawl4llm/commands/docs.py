"""``crawl4llm docs``: the pages of the documentation that came with the package."""

from __future__ import annotations

import argparse
import pydoc
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Final

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.base.command_lines import usage
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.tables import Part, Rows
from crawl4llm.base.terminal import complain, harmless, print_lines

PAGES: Final = Path(__file__).resolve().parents[1] / "docs"
"""The pages; in a checkout a link to its own, ``docs/``."""


class Command(ScrapyCommand):
    """Shows a page: in the pager on a terminal, as it is elsewhere."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[TOPIC]"

    def short_desc(self) -> str:
        return "Show a page of the documentation"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()} that came with this version of crawl4llm: in the pager ($PAGER) on a terminal, as "
            "Markdown on a pipe. Without TOPIC the command lists the pages."
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) > 1 or any(arg.startswith("-") for arg in args):
            raise UsageError(f"usage: {usage('docs', self.syntax())}", print_help=False)
        if not args:
            self.exitcode = print_lines(_topics())
            return
        try:
            text = page(args[0])
        except InputError as error:
            complain(error)
            self.exitcode = 1
            return
        if sys.stdout.isatty():
            pydoc.pager(harmless(text))
        else:
            self.exitcode = print_lines([text])


def topics() -> list[str]:
    """Return the names of the pages."""
    return sorted(path.stem for path in PAGES.glob("*.md"))


def page(topic: str) -> str:
    """Return the text of a page. Raises InputError if there is none of that name."""
    name = topic.removesuffix(".md").removeprefix("docs/")
    if name not in (known := topics()):
        near = "".join(f"; did you mean {one}?" for one in get_close_matches(name, known, 1))
        raise InputError(f"there is no page {name!r:.100}{near or '; `' + usage('docs') + '` lists them'}")
    path = PAGES / f"{name}.md"
    with as_input_error(f"{path} cannot be read"):
        return path.read_text(encoding="utf-8").rstrip()


def _topics() -> Iterator[Part]:
    """Yield the names and titles of the pages."""
    rows = [(name, page(name).partition("\n")[0].lstrip("# ")) for name in topics()]
    yield Rows("pages", ("topic", "title"), rows, f"Pages in {PAGES}; `{usage('docs', 'TOPIC')}` shows one:")

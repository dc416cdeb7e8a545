"""The reference pages of docs/ (settings, stats, commands, crawl log, API) and the tables of docs/opt-outs.md and
docs/site-rules.md, from code: ``python -m crawl4llm.commands.reference``."""

from __future__ import annotations

import argparse
import ast
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import scrapy.commands
from scrapy.settings import Settings

import crawl4llm
from crawl4llm import commands, options
from crawl4llm.base import crawl_log, stats
from crawl4llm.engine import settings
from crawl4llm.optouts import table
from crawl4llm.parts import site_rules_reference

DOCS = Path(__file__).resolve().parents[2] / "docs"

_SETTINGS = """# Settings

For everybody who runs a crawl: all settings, with their defaults.
Set them in `settings/`, on the command line (`-s NAME=VALUE`), or in the settings of your own project. They are checked
when a crawl starts. A wrong value ends the crawl with one line that names it. So does a misspelt name
(`crawl_max_pages`, `MAX_PAGES`), or the name of a removed setting. A setting on the command line that this kind of
crawl ignores brings a warning: `DNS_HOSTS` in a simulation, `HARMONIC_RANKS` without that policy. The last section says
which of [Scrapy's own](#scrapys-own-settings) settings apply. `python -m crawl4llm.commands.reference` writes this page
from `crawl4llm/options.py`, `crawl4llm/engine/settings.py` and `settings/`.

The profiles of this project change some defaults:

"""

_SCRAPYS = """
## Scrapy's own settings

The settings that Scrapy documents for requests, downloads and depth, and whether they apply in a simulation, in a live
crawl, and with the [add-on](addon.md). A setting on the command line that does not apply brings a warning. The profiles
in `settings/` change some of Scrapy's defaults.

"""

_STATS = """# Statistics

For operators, and for programs that watch a crawl: all counts of a crawl, in Scrapy's stats and in
`OUTPUT_DIR/stats.json`. `python -m crawl4llm.commands.reference` writes this page from `crawl4llm/base/stats.py`.

"""

_COMMANDS = """# Commands

For people at a terminal: all commands of this project with their options, as in `scrapy COMMAND --help`. Each command
also takes Scrapy's own options, such as `-s NAME=VALUE` for a [setting](settings.md). `crawl4llm` has the same
commands. `python -m crawl4llm.commands.reference` writes this page from `crawl4llm/commands/`.

`scrapy crawl influence [-a seeds=FILE] [-s NAME=VALUE ...]` crawls: [simulation-and-live.md](simulation-and-live.md).

Scrapy's own commands are there too. `scrapy fetch`, `view` and `shell` take the id or URL of a document of the corpus,
and need its index for a URL (`scrapy corpus index`). `crawl NAME`, `runspider`, `check` and `parse --spider NAME` give
pages of the corpus to your own spiders. The live profile refuses them, because they would ignore robots.txt and
politeness delays; use the archive of a live crawl as a corpus (`CORPUS=OUTPUT_DIR`). `scrapy bench` is refused.
"""

_CRAWL_LOG = """# The crawl log

For programs that read a crawl. Both files are in the output directory, with one JSON object per line. While a crawl
runs they may end with a part of a line. `crawl4llm.open_run` returns them as [tables](python.md).
`python -m crawl4llm.commands.reference` writes this page from `crawl4llm/base/crawl_log.py`.

"""

_API = """# Python API

For programs and notebooks: everything that `crawl4llm` exports. Names that are not listed here may change.
[python.md](python.md) is the guide. `python -m crawl4llm.commands.reference` writes this page from docstrings.
"""

_WRITTEN = "<!-- What follows is written by python -m crawl4llm.commands.reference. -->\n"


def _profiles() -> str:
    """Return the settings of each profile, as a Markdown list."""
    lines = []
    for profile in ("simulation", "live"):
        given = vars(import_module(f"settings.{profile}"))
        defaults = {options.setting_name(option): option.default for option in fields(options.Options)}
        own = [f"`{name} = {given[name]!r}`" for name in defaults if given.get(name, defaults[name]) != defaults[name]]
        lines.append(f"- `{profile}`: {', '.join(own)}\n")
    return "".join(lines)


def _behind_prose(page: str, tables: str) -> str:
    """Return a page whose first part is written by hand, with tables behind it."""
    prose, mark, _ = (DOCS / page).read_text(encoding="utf-8").partition(_WRITTEN)
    return f"{prose}{mark}\n{tables}"


def _commands() -> str:
    """Return each command with its options, as Markdown."""
    text, scrapys = "", {module.name for module in pkgutil.iter_modules(scrapy.commands.__path__)}
    for module in pkgutil.iter_modules(commands.__path__):
        found = import_module(f"{commands.__name__}.{module.name}")
        if not hasattr(found, "Command") or module.name in scrapys:
            continue
        command = found.Command()
        command.settings = Settings()
        parser = argparse.ArgumentParser(prog=f"scrapy {module.name}", add_help=False)
        command.add_options(parser)
        text += f"\n## scrapy {module.name}\n\n`scrapy {module.name} {command.syntax()}`\n\n{command.long_desc()}\n"
        for group in parser._action_groups:
            if group.title != "Global Options" and (group._group_actions or group.description):
                says = f"\n{_cell(group.description)}\n" if group.description else ""
                rows = "".join(f"| {_option(action)} | {_help(parser, action)} |\n" for action in group._group_actions)
                text += says + (f"\n| option | description |\n|-|-|\n{rows}" if rows else "")
    return text


def _option(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings) or str(action.dest)
    value = "" if action.nargs == 0 else action.metavar or ("{" + ",".join(map(str, action.choices or ())) + "}")
    return f"`{names} {value}`".replace(" `", "`").replace("|", "\\|")


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return _cell(parser._get_formatter()._expand_help(action))


def _cell(text: str) -> str:
    return re.sub(r"([|<])", r"\\\1", text)


def _crawl_log() -> str:
    """Return the fields of each kind of line, as Markdown."""
    kinds = {
        "crawl.jsonl: a line per crawled page": (crawl_log.CrawlLine, crawl_log.ComparedLine),
        "failures.jsonl: a line per document that ended without a page": (
            crawl_log.FailureLine,
            crawl_log.ExplainedLine,
            crawl_log.RedirectLine,
        ),
    }
    text = ""
    for title, lines in kinds.items():
        text += f"## {title}\n\n"
        for line in lines:
            rows = "".join(f"| `{name}` | `{kind}` | {says} |\n" for name, kind, says in _attributes(line))
            text += _plain(f"{inspect.getdoc(line)}\n\n| field | type | |\n|-|-|-|\n{rows}\n")
    return text.rstrip() + "\n"


def _attributes(kind: type) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and docstring of the attributes that the body of a class annotates."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(body, ast.ClassDef)
    for node, following in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            says = ast.literal_eval(following.value) if isinstance(following, ast.Expr) else ""
            yield node.target.id, ast.unparse(node.annotation).replace(" | ", " or "), " ".join(says.split())


def _api() -> str:
    """Return the public names with their signatures and docstrings, as Markdown."""
    text = ""
    for name in crawl4llm.__all__:
        found = getattr(crawl4llm, name)
        if isinstance(found, str):
            continue
        text += f"\n## {name}\n\n"
        if inspect.isfunction(found):
            text += _signature(name, found)
        text += f"{_plain(inspect.getdoc(found) or '')}\n"
        if not isinstance(found, type) or issubclass(found, Exception):
            continue
        if is_dataclass(found):
            rows = [f"- `{name}`: {kind}. {says}" for name, kind, says in _attributes(found) if name[0] != "_"]
            text += "\n" + "\n".join(rows) + "\n"
        for member, value in vars(found).items():
            if member[0] != "_" and isinstance(value, property):
                text += f"\n### {name}.{member}\n\n{_plain(inspect.getdoc(value) or '')}\n"
            elif member[0] != "_" and inspect.isfunction(value):
                text += f"\n### {name}.{member}()\n\n{_signature(member, value)}{_plain(inspect.getdoc(value) or '')}\n"
    return text


def _signature(name: str, function: Any) -> str:
    given = str(inspect.signature(function)).replace("self, ", "").replace("(self)", "()")
    given = re.sub(r"(: |-> )'([^']+)'", r"\1\2", given)
    return f"```python\n{name}{given}\n```\n\n"


def _plain(text: str) -> str:
    """Return a docstring's references and literals as Markdown has them."""
    return re.sub(r":\w+:`([^`]+)`", r"`\1`", text).replace("``", "`")


def pages() -> dict[Path, str]:
    """Return each reference page and its generated text."""
    return {
        DOCS / "settings.md": f"{_SETTINGS}{_profiles()}\n{options.reference()}{_SCRAPYS}{settings.reference()}",
        DOCS / "stats.md": _STATS + stats.reference(),
        DOCS / "commands.md": _COMMANDS + _commands(),
        DOCS / "crawl-log.md": _CRAWL_LOG + _crawl_log(),
        DOCS / "api.md": _API + _api(),
        DOCS / "opt-outs.md": _behind_prose("opt-outs.md", table.reference()),
        DOCS / "site-rules.md": _behind_prose("site-rules.md", site_rules_reference()),
    }


if __name__ == "__main__":
    for page, content in pages().items():
        page.write_text(content, encoding="utf-8")

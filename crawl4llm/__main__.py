"""The command ``crawl4llm``, also ``python -m crawl4llm``: it makes a project, and runs Scrapy's commands as ``scrapy``
does. If pipx or uv installed the project, only this command is on the path."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crawl4llm.base.command_lines import command, quoted
from crawl4llm.base.installed import tell_missing_packages
from crawl4llm.base.terminal import end_when_interrupted, print_lines
from crawl4llm.base.version import __version__

PROFILES: Final = Path(__file__).with_name("profiles")
"""The settings of new projects; in a checkout a link to its own, ``settings/``."""

FILES: Final = {
    "scrapy.cfg": """\
[settings]
default = settings.simulation
live = settings.live
clueweb12 = settings.clueweb12
""",
    "seeds.txt": """\
# Where a live crawl begins: URLs, one a line. In a simulation: ids or URLs of documents of CORPUS.
https://example.org/
""",
    ".gitignore": """\
.scrapy/
__pycache__/
/crawls/
/jobs/
/models/
/pretraining/
/report/
""",
}


_COMMANDS: Final = {
    "live": "crawl the live web, politely",
    "simulate": "crawl a corpus, as if it were the web",
    "docs": "show a page of the documentation",
    "report": "report what a live crawl sent to whom",
    "export": "export archived pages as text for pretraining",
}
"""Scrapy's, of which the help speaks."""


def main() -> int:
    """Run the command; return its exit status. All but ``init`` are Scrapy's, with those of this project."""
    end_when_interrupted()
    tell_missing_packages()
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    if words and words[0] != "init":
        from scrapy.cmdline import execute  # slow to import, and ``init`` does without

        execute()  # ends the process
    parser = argparse.ArgumentParser(
        "crawl4llm",
        description="Focused crawls for LLM pretraining, with Scrapy.",
        epilog="`crawl4llm COMMAND --help` tells more. Every command but init is one of scrapy's too: `crawl4llm crawl "
        "influence` is `scrapy crawl influence`. `scrapy -h` lists them all.",
    )
    parser.add_argument("--version", action="version", version=f"crawl4llm {__version__}")
    actions = parser.add_subparsers(metavar="COMMAND", required=True)
    init = actions.add_parser("init", help="make a project to crawl in", description="Make a project to crawl in.")
    for name, what in _COMMANDS.items():
        actions.add_parser(name, help=what)
    init.add_argument("folder", metavar="DIR", type=Path, help="where; a new or empty folder")
    return print_lines(make_project(parser.parse_args().folder))


def make_project(folder: Path) -> Iterator[str]:
    """Write the files of a project into a new or empty folder, and yield what to do next. Raises InputError."""
    from crawl4llm.base.whole_files import check_free, writing  # needs more than the standard library

    check_free(folder, "init")
    with writing(folder, "the project"):
        settings = folder / "settings"
        settings.mkdir(parents=True)
        for profile in sorted(PROFILES.glob("*.py")):
            (settings / profile.name).write_bytes(profile.read_bytes())
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
    yield f"{folder}: a project with the profiles settings/simulation.py and settings/live.py. Next:"
    yield f"  cd {quoted([folder])[0]}"
    yield f"  {command('crawl', 'influence')}    # the demo web, which is made first, in about half a minute"


if __name__ == "__main__":
    sys.exit(main())

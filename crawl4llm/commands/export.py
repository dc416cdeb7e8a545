"""``scrapy export``: from archives to the input of pretraining pipelines."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.base.command_lines import usage
from crawl4llm.base.input_files import given_path
from crawl4llm.base.tables import Part
from crawl4llm.base.terminal import add_json_option, add_tasks_option, positive_integer, print_lines


class Command(ScrapyCommand):
    """Hands over to :mod:`crawl4llm.tools.export.export`."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return "SOURCE [SOURCE ...] --out DIR [options]"

    def short_desc(self) -> str:
        return "Export archived pages as text, in the formats of pretraining pipelines"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. SOURCE is a crawl's OUTPUT_DIR, its storage, its warc/ folder, or WARC files of any "
            "origin: a file, a folder, a glob pattern, or a text file with a list of paths. The same command goes on "
            "where it was killed."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        # here, as Scrapy imports every command to run one
        from crawl4llm.tools.export.formats import FORMATS
        from crawl4llm.tools.export.selecting import CRAWL, INFLUENCE

        super().add_options(parser)
        add_json_option(parser)
        add_tasks_option(parser)
        group = parser.add_argument_group("what is written")
        group.add_argument("--out", metavar="DIR", help="where the export is written (needed)")
        group.add_argument("--format", choices=FORMATS, default="jsonl.zst", help="of the files (default: %(default)s)")
        group.add_argument(
            "--order", choices=(CRAWL, INFLUENCE), default=CRAWL, help="as crawled (default), or the best first"
        )
        group.add_argument(
            "--shard-documents",
            metavar="N",
            type=positive_integer,
            default=100_000,
            help="documents in a file, at most (default: %(default)s)",
        )
        group.add_argument(
            "--shard-bytes", metavar="N", type=positive_integer, help="bytes of text in a file, before compression"
        )
        tokens = "count tokens by this tokenizer.json of the library tokenizers"
        group.add_argument("--tokenizer", metavar="FILE", help=tokens)
        languages = "fastText model, such as lid.176.ftz, for languages that no archive says (default: py3langid)"
        group.add_argument("--language-model", metavar="FILE", help=languages)
        group = parser.add_argument_group("which documents")
        group.add_argument(
            "--min-influence",
            metavar="X",
            type=_number,
            help="those with at least this score, no others",
        )
        group.add_argument("--top", metavar="N", type=positive_integer, help="the N best")
        group.add_argument("--top-share", metavar="X", type=_share, help="the best share of them, like 0.1")
        group.add_argument("--oracle", action="store_true", help="the oracle set of the corpus that was crawled")
        group.add_argument(
            "--language",
            dest="languages",
            metavar="L",
            action="append",
            default=[],
            help="of this language; may be given again",
        )
        group.add_argument("--min-words", metavar="N", type=positive_integer, help="with at least N words")
        group.add_argument("--max-words", metavar="N", type=positive_integer, help="with at most N words")
        group.add_argument(
            "--keep-duplicates", action="store_true", help="also those whose text is that of a better one, or nearly"
        )
        group.add_argument(
            "--keep-near-duplicates",
            action="store_true",
            help="also those whose text shares 0.8 or more of its runs of five words with a better one",
        )
        group.add_argument(
            "--known", metavar="FILE", help="leave out texts that a file of `scrapy corpus known` has, or nearly"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Export; exit status 0 only when that is finished."""
        unknown = [arg for arg in args if arg.startswith("-")]
        if unknown:
            raise UsageError(f"unknown option {unknown[0]}", print_help=False)
        if not args or not opts.out:
            raise UsageError(f"usage: {usage('export', self.syntax())}", print_help=False)

        self.exitcode = print_lines(self._lines(args, opts), as_json=opts.json, goes_on=True)

    def _lines(self, args: list[str], opts: argparse.Namespace) -> Iterator[Part]:
        # here, as Scrapy imports every command to run one
        from crawl4llm.tools.export.export import export
        from crawl4llm.tools.export.selecting import Wanted

        assert self.settings is not None
        given = {field.name: getattr(opts, field.name) for field in fields(Wanted)}
        wanted = Wanted(**given | {"languages": tuple(opts.languages)})
        yield from export(self.settings, args, given_path(opts.out), wanted, opts.tasks)


def _number(text: str) -> float:
    """Parse an option that is a finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return number


def _share(text: str) -> float:
    """Parse an option that is more than 0 and at most 1."""
    share = _number(text)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0 and at most 1")
    return share

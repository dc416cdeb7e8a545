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
            "origin: a file, a folder, a glob pattern, or a text file with a list of paths. After an interruption the "
            "same command continues."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        # here, as Scrapy imports every command to run one
        from crawl4llm.tools.export.filters import CRAWL, INFLUENCE
        from crawl4llm.tools.export.formats import FORMATS

        super().add_options(parser)
        add_json_option(parser)
        add_tasks_option(parser)
        group = parser.add_argument_group("what is written")
        group.add_argument("--out", metavar="DIR", help="folder of the export (required)")
        group.add_argument("--format", choices=FORMATS, default="jsonl.zst", help="of the files (default: %(default)s)")
        group.add_argument(
            "--order", choices=(CRAWL, INFLUENCE), default=CRAWL, help="crawl order (default), or best first"
        )
        group.add_argument(
            "--shard-documents",
            metavar="N",
            type=positive_integer,
            default=100_000,
            help="maximum documents per file (default: %(default)s)",
        )
        group.add_argument(
            "--shard-bytes",
            metavar="N",
            type=positive_integer,
            help="maximum bytes of text per file, before compression",
        )
        tokens = "count tokens with this tokenizer.json of the library tokenizers"
        group.add_argument("--tokenizer", metavar="FILE", help=tokens)
        languages = "fastText model, such as lid.176.ftz, for pages of unknown language (default: py3langid)"
        group.add_argument("--language-model", metavar="FILE", help=languages)
        group = parser.add_argument_group("which documents")
        group.add_argument(
            "--min-influence",
            metavar="X",
            type=_number,
            help="only pages with at least this score",
        )
        group.add_argument("--top", metavar="N", type=positive_integer, help="the N best")
        group.add_argument("--top-share", metavar="X", type=_share, help="only the best share of the pages, like 0.1")
        group.add_argument("--oracle", action="store_true", help="only the oracle set of the crawled corpus")
        group.add_argument(
            "--language",
            dest="languages",
            metavar="L",
            action="append",
            default=[],
            help="only pages in this language; may be repeated",
        )
        group.add_argument("--min-words", metavar="N", type=positive_integer, help="only pages with at least N words")
        group.add_argument("--max-words", metavar="N", type=positive_integer, help="only pages with at most N words")
        group.add_argument(
            "--keep-duplicates", action="store_true", help="keep duplicates and near duplicates of better pages"
        )
        group.add_argument(
            "--keep-near-duplicates",
            action="store_true",
            help="keep near duplicates: pages that share 0.8 or more of their runs of five words with a better page",
        )
        group.add_argument(
            "--known",
            metavar="FILE",
            help="leave out texts that are in a file of `scrapy corpus known`, and near duplicates of these",
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
        from crawl4llm.tools.export.filters import Wanted

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

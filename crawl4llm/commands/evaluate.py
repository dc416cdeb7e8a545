"""``scrapy evaluate``: evaluate crawls against the best pages of their corpus."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.base.terminal import positive_integer


class Command(ScrapyCommand):
    """Writes the report of :mod:`crawl4llm.tools.evaluate.evaluate`."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return "RUN [RUN ...] --out DIR [options]"

    def short_desc(self) -> str:
        return "Evaluate crawls of one corpus against its best pages, and compare them"

    def long_desc(self) -> str:
        return f"{self.short_desc()}. RUN is a crawl's OUTPUT_DIR. The corpus is scored once, and the scores are kept."

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--out", metavar="DIR", help="where the report is written (needed)")
        random = "look at K random documents instead of the whole corpus, and give confidence intervals"
        parser.add_argument("--sample", metavar="K", type=positive_integer, help=random)
        topic = "also evaluate similarity to a topic: pages with a word of it"
        parser.add_argument("--topic", metavar="WORDS", help=topic)
        parser.add_argument(
            "--scorers",
            metavar="A,B",
            help="also correlate two scorers: each what SCORER takes, or the path of a fastText model",
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Write the report; exit status 0 only when that is done."""
        if not args or not opts.out:
            raise UsageError(f"usage: scrapy evaluate {self.syntax()}", print_help=False)
        scorers = opts.scorers.split(",") if opts.scorers else []
        if opts.scorers and len(list(filter(None, scorers))) != 2:
            raise UsageError("--scorers takes two scorers, as in --scorers fasttext,length", print_help=False)

        from crawl4llm.base.terminal import print_lines

        self.exitcode = print_lines(self._lines(args, opts, scorers))

    def _lines(self, args: list[str], opts: argparse.Namespace, scorers: list[str]) -> Iterator[str]:
        from crawl4llm.base.files import check_free
        from crawl4llm.tools.evaluate.report import check_installed, write_report

        check_installed()
        check_free(Path(opts.out))
        from crawl4llm.tools.evaluate.evaluate import Wanted, evaluate

        assert self.settings is not None
        wanted = Wanted(opts.sample, (opts.topic or "").split(), scorers)
        report = evaluate(self.settings, list(map(Path, args)), wanted)
        yield from report.notes
        written = write_report(report, Path(opts.out))
        yield f"Wrote {len(written)} files to {opts.out}: open {Path(opts.out) / 'report.html'}"

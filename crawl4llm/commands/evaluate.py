"""``scrapy evaluate``: evaluate crawls against the best pages of their corpus."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.base.command_lines import docs, usage
from crawl4llm.base.input_files import given_path
from crawl4llm.base.tables import Part, facts
from crawl4llm.base.terminal import add_json_option, add_tasks_option, positive_integer, print_lines
from crawl4llm.commands._help import HelpFormatter


class Command(ScrapyCommand):
    """Writes the report of :mod:`crawl4llm.tools.evaluate.evaluate`."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return "RUN [RUN ...] --out DIR [options] | --contest [TRACK|FILE] --out DIR [options]"

    def short_desc(self) -> str:
        return "Evaluate crawls of one corpus against its best pages, and compare them; or hold a contest of policies"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. RUN is a crawl's OUTPUT_DIR or storage. The corpus is scored once, and the scores "
            "are kept. A contest crawls webs by several policies, all from the same seeds, and ranks the policies by "
            f"recall ({docs('contest')})."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = HelpFormatter
        add_json_option(parser)
        add_tasks_option(parser)
        parser.add_argument("--out", metavar="DIR", help="folder of the report (required)")
        random = "survey K random documents instead of the whole corpus, with confidence intervals"
        parser.add_argument("--sample", metavar="K", type=positive_integer, help=random)
        trained = f"also show the losses of models trained on the runs: results of scrapy trainlm ({docs('trainlm')})"
        parser.add_argument("--trained", metavar="DIR|FILE", help=trained)
        topic = "also evaluate similarity to a topic: pages with one of these words"
        parser.add_argument("--topic", metavar="WORDS", help=topic)
        parser.add_argument(
            "--scorers",
            metavar="A,B",
            help="also correlate two scorers, each a value of SCORER or the path of a fastText model",
        )

        group = parser.add_argument_group("contest")
        track = "a track's name (default: small) or JSON file, or a contest.json, to write its report again"
        group.add_argument("--contest", metavar="TRACK|FILE", nargs="?", const="small", help=track)
        webs = "a corpus, as in CORPUS, instead of the track's webs; may be repeated"
        group.add_argument("--contest-web", metavar="PATH", action="append", default=[], help=webs)
        policies = "names, files (my_policy.py) or dotted paths (default: influence, and all that do not look ahead)"
        group.add_argument("--policies", metavar="A,B", help=policies)
        half = "crawl the webs and halves of hosts for reporting results (default), or those for tuning"
        group.add_argument("--half", choices=("reporting", "tuning"), default="reporting", help=half)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Write the report; exit status 0 only when that is done."""
        of_runs = opts.sample, opts.topic, opts.scorers, opts.tasks, opts.trained
        of_contest = opts.contest_web, opts.policies
        mixed = any(of_runs) if opts.contest else any(of_contest)
        if bool(args) == bool(opts.contest) or mixed or not opts.out:
            raise UsageError(f"usage: {usage('evaluate', self.syntax())}", print_help=False)
        scorers = opts.scorers.split(",") if opts.scorers else []
        if opts.scorers and len(list(filter(None, scorers))) != 2:
            raise UsageError("--scorers takes two scorers, as in --scorers fasttext,length", print_help=False)

        lines = self._contest(opts) if opts.contest else self._lines(args, opts, scorers)
        self.exitcode = print_lines(lines, as_json=opts.json, goes_on=bool(opts.contest))

    def _contest(self, opts: argparse.Namespace) -> Iterator[Part]:
        # here, as Scrapy imports every command to run one
        from crawl4llm.tools.evaluate.report import check_installed

        check_installed()
        # here, as Scrapy imports every command to run one
        from crawl4llm.tools.evaluate.contest.contest import Wanted, hold

        assert self.settings is not None
        policies = list(filter(None, (opts.policies or "").split(",")))
        yield from hold(
            self.settings,
            Wanted(
                Path(opts.out),
                opts.contest,
                opts.contest_web,
                policies,
                opts.half,
                as_json=opts.json,
            ),
        )

    def _lines(self, args: list[str], opts: argparse.Namespace, scorers: list[str]) -> Iterator[Part]:
        # here, as Scrapy imports every command to run one
        from crawl4llm.base.whole_files import check_free, whole_folder, writing
        from crawl4llm.tools.evaluate.report import check_installed, write_report
        from crawl4llm.tools.opened_run import run_folder

        check_installed()
        check_free(Path(opts.out))
        # here, as Scrapy imports every command to run one
        from crawl4llm.tools.evaluate.evaluate import Wanted, evaluate

        assert self.settings is not None
        wanted = Wanted(
            opts.sample, (opts.topic or "").split(), scorers, opts.tasks, opts.trained and given_path(opts.trained)
        )
        report = evaluate(self.settings, [run_folder(given, self.settings) for given in args], wanted)
        out = Path(opts.out).absolute()
        with writing(out, "the report"), whole_folder(out) as folder:
            written = write_report(report, folder)
        if opts.json:
            yield from facts(json.loads(report.json()))
            return
        yield from (*report.verdict, *report.notes)
        yield f"Wrote {len(written)} files to {opts.out}: open {Path(opts.out) / 'report.html'}"

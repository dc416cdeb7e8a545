"""``scrapy trainlm``: train small language models on the pages of crawls."""

from __future__ import annotations

import argparse
from typing import Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.base.command_lines import usage
from crawl4llm.base.input_files import given_path
from crawl4llm.base.terminal import add_json_option, positive_integer, print_lines
from crawl4llm.commands._help import HelpFormatter


class Command(ScrapyCommand):
    """The command of :mod:`crawl4llm.tools.trainlm.trainlm`."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return "RUN [RUN ...] --target SRC --tokens T --out DIR [options]"

    def short_desc(self) -> str:
        return "Train small language models on the pages of crawls, and measure them on held-out texts"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. RUN is a crawl's OUTPUT_DIR. SRC is a JSON Lines file (.jsonl, .jsonl.gz, "
            ".jsonl.zst), a Parquet file, WARC files, or a file with ids of documents of CORPUS. After an "
            "interruption the same command continues."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = HelpFormatter
        add_json_option(parser)
        target = "texts; half of them measure the models (required, may be repeated)"
        parser.add_argument("--target", action="append", default=[], metavar="SRC", help=target)
        tokens = "tokens of each run, in crawl order, to train a model on (required)"
        parser.add_argument("--tokens", type=positive_integer, metavar="T", help=tokens)
        parser.add_argument("--out", metavar="DIR", help="folder of the plan and its results (required)")
        sizes = ("50k", "1m", "5m", "25m", "120m")
        size = "parameters of the model, embeddings included (default: %(default)s)"
        parser.add_argument("--model", choices=sizes, default="1m", help=size)
        seeds = "trainings of each run, with different random seeds (default: %(default)s)"
        parser.add_argument("--seeds", type=positive_integer, default=3, metavar="N", help=seeds)
        curve = "also train on 1/K, 2/K ... of the tokens, for a curve of loss against pages fetched"
        parser.add_argument("--curve", type=positive_integer, default=1, metavar="K", help=curve)
        tokenizer = "a tokenizer.json (default: one is trained on the other half of the target)"
        parser.add_argument("--tokenizer", metavar="FILE", help=tokenizer)
        field = "field or column of the target's text (default: %(default)s)"
        parser.add_argument("--text-field", metavar="NAME", default="text", help=field)
        device = "device to train on (default: a GPU if JAX finds one)"
        parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help=device)
        group = parser.add_mutually_exclusive_group()
        estimate = "train nothing; estimate the same losses with n-grams"
        group.add_argument("--estimate", dest="only", action="store_const", const="estimate", default="", help=estimate)
        plan = "train nothing; write the plan for a machine without crawl4llm"
        group.add_argument("--plan", dest="only", action="store_const", const="plan", help=plan)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Train; exit status 0 only when all results are there."""
        if not (args and opts.target and opts.tokens and opts.out):
            raise UsageError(f"usage: {usage('trainlm', self.syntax())}", print_help=False)

        # here, as Scrapy imports every command to run one
        from crawl4llm.tools.trainlm.trainlm import Wanted, trainlm

        assert self.settings is not None
        wanted = Wanted(
            runs=args,
            targets=opts.target,
            tokens=opts.tokens,
            out=given_path(opts.out),
            size=opts.model,
            seeds=opts.seeds,
            points=opts.curve,
            tokenizer=opts.tokenizer,
            text_field=opts.text_field,
            device=opts.device,
            only=opts.only,
        )
        self.exitcode = print_lines(trainlm(self.settings, wanted), as_json=opts.json, goes_on=True)

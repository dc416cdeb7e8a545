"""``scrapy trainscorer``: train an influence model."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.base.command_lines import usage
from crawl4llm.base.input_files import given_path
from crawl4llm.base.terminal import add_json_option, positive_integer, print_lines

_LARGEST = 2**31 - 1  # largest number that fastText takes


class Command(ScrapyCommand):
    """Trains the model of :mod:`crawl4llm.tools.trainscorer`."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        return "--positive SRC [SRC ...] --negative SRC [SRC ...] --out DIR [options]"

    def short_desc(self) -> str:
        return "Train an influence model on positive and negative texts"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}, by DCLM's recipe. SRC is a JSON Lines file (.jsonl, .jsonl.gz, .jsonl.zst), a "
            "Parquet file, WARC files (a file, a folder, a crawl's OUTPUT_DIR, a pattern), or a file with ids of "
            "documents of CORPUS, one a line. DIR must not exist yet."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        # here, as Scrapy imports every command to run one
        from crawl4llm.tools._fit import Recipe

        default = Recipe()
        add_json_option(parser)
        for name, texts in (("positive", "good texts"), ("negative", "ordinary texts, ideally a random sample")):
            parser.add_argument(f"--{name}", nargs="+", action="extend", metavar="SRC", help=f"{texts} (needed)")
        parser.add_argument("--out", metavar="DIR", help="folder of the model and its files (required)")
        parser.add_argument("--text-field", metavar="NAME", default="text", help="field or column of the text")
        parser.add_argument("--balance", action="store_true", help="drop texts of the larger class at random")
        parser.add_argument("--quantize", action="store_true", help="also make a small model.ftz")
        parser.add_argument(
            "--held-out",
            type=_share,
            default=default.held_out,
            metavar="SHARE",
            help="share of the texts to test on (default: %(default)s)",
        )
        parser.add_argument("--seed", type=_seed, default=default.seed, metavar="N", help="default: %(default)s")
        rate = "learning rate (default: %(default)s)"
        parser.add_argument("--rate", type=_rate, default=default.rate, metavar="NUMBER", help=rate)
        for name, value, meaning in (
            ("--epochs", default.epochs, "passes over the texts"),
            ("--dim", default.dim, "dimensions of word vectors"),
            ("--word-ngrams", default.word_ngrams, "maximum length of word n-grams"),
            ("--min-count", default.min_count, "leave out words that are rarer than this"),
            ("--buckets", default.buckets, "hash buckets of word n-grams; most of the model's size"),
        ):
            parser.add_argument(name, type=_count, default=value, metavar="N", help=f"{meaning} (default: %(default)s)")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Train; exit status 0 only when the model is written."""
        if args:
            raise UsageError(f"unknown argument {args[0]}", print_help=False)
        if not (opts.positive and opts.negative and opts.out):
            raise UsageError(f"usage: {usage('trainscorer', self.syntax())}", print_help=False)

        # here, as Scrapy imports every command to run one
        from crawl4llm.tools._fit import Recipe
        from crawl4llm.tools.trainscorer import Wanted, train

        assert self.settings is not None
        recipe = Recipe(**{option.name: getattr(opts, option.name) for option in fields(Recipe)})
        wanted = Wanted(opts.positive, opts.negative, given_path(opts.out), opts.text_field, recipe)
        self.exitcode = print_lines(train(self.settings, wanted), as_json=opts.json)


def _share(text: str) -> float:
    return _number(text, 0.0, 1.0, "a share between 0 and 1")


def _rate(text: str) -> float:
    return _number(text, 0.0, float("inf"), "a positive number")


def _number(text: str, above: float, below: float, wanted: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = above
    if not above < number < below:
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return number


def _count(text: str) -> int:
    number = positive_integer(text)
    if number > _LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is more than {_LARGEST}")
    return number


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _LARGEST):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {_LARGEST}")
    return int(text)

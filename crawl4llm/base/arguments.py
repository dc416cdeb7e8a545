"""What the command lines of several commands share."""

from __future__ import annotations

import argparse


def positive_integer(text: str) -> int:
    """One that counts something."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def add_question_options(parser: argparse._ArgumentGroup) -> None:
    """Add what a purge takes besides the domain."""
    parser.add_argument(
        "--whole-suffix", action="store_true", help="purge a public suffix, such as com or github.io, too"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask, on a terminal, before anything is removed")

"""Types of command line options."""

from __future__ import annotations

import argparse


def positive_integer(text: str) -> int:
    """One that counts something."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)

"""Trains with fastText by DCLM's recipe, in a process of its own: scorers, and the models of the bound.

Its C++ code heeds no Ctrl-C, and its failures may end the process.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.bars import Lines
from crawl4llm.base.errors import InputError
from crawl4llm.base.processes import ChildEnded, in_child
from crawl4llm.scoring import inspect_model

PREFIX: Final = "__label__"
POSITIVE, NEGATIVE = f"{PREFIX}hq", f"{PREFIX}cc"
"""DCLM's labels: of high quality; of Common Crawl."""


@dataclass(frozen=True)
class Recipe:
    """All that decides the model besides the texts.

    The defaults are those of DCLM (Li et al. 2024, DataComp-LM, section 4.4; ``baselines/README.md`` and
    ``train_fasttext_classifier.py`` of its repository): supervised fastText with word bigrams, else its defaults.
    """

    word_ngrams: int = 2
    dim: int = 100
    epochs: int = 5
    rate: float = 0.1
    min_count: int = 1
    buckets: int = 2_000_000
    seed: int = 0
    """Random seed for the order of the examples, for balancing, and for fastText's first vectors."""
    balance: bool = False
    """True to drop texts of the larger class until both have as many."""
    held_out: float = 0.1
    """The share of the texts that the model is not trained on, but tested."""
    quantize: bool = False
    """True to make a smaller, quantised model too."""

    def fasttext(self) -> dict[str, Any]:
        """Return the arguments of ``fasttext.train_supervised``; with one thread it gives the same model each time."""
        return {
            "wordNgrams": self.word_ngrams,
            "dim": self.dim,
            "epoch": self.epochs,
            "lr": self.rate,
            "minCount": self.min_count,
            "bucket": self.buckets,
            "minn": 0,
            "maxn": 0,
            "loss": "softmax",
            "label": PREFIX,
            "seed": self.seed,
            "thread": 1,
        }


_WITH_PROGRESS = 2
"""fastText's ``verbose``, with which it writes to standard error how far it is."""
_SHARE = re.compile(rb"Progress: *([0-9.]+%)")
_LONGEST_SAID = 1000


def fit(
    examples: Path,
    model: Path,
    arguments: Mapping[str, Any],
    *,
    quantised: Path | None = None,
    progress: bool,
    advice: str = "",
) -> None:
    """Train a model on a file of examples and write it; if wanted, a quantised one besides.

    ``advice`` ends the line that says that fastText failed. ``progress``: fastText shows how far it is, as it does on a
    terminal; else a line is printed now and then. Raises InputError if fastText fails, and OSError if its files are
    incomplete: it does not say when the disk is full. Ended by an interrupt, it leaves no process behind.
    """
    given = {**arguments, "input": os.fsencode(examples), "verbose": _WITH_PROGRESS}
    said, says = multiprocessing.Pipe(duplex=False)
    with said, says:
        lines = None if progress else _Lines(said)
        try:
            fault = in_child(_fit, given, model, quantised, None if progress else says, idle=lines)
        except ChildEnded as ended:
            fault = f"its process has ended with {ended}, maybe for lack of memory"
    if fault is not None:
        raise InputError(f"fastText cannot train on this: {fault}{advice}")
    for path in filter(None, (model, quantised)):
        try:
            finite = inspect_model(path).finite
        except InputError:
            raise OSError(errno.ENOSPC, f"{path.name} was not written whole; is the disk full?") from None
        if not finite:
            raise InputError("fastText has trained weights that are NaN; try a smaller --rate")


class _Lines:
    """Prints a line of fastText's output now and then."""

    def __init__(self, said: Connection) -> None:
        self._said = said
        self._lines, self._last = Lines("training"), b""

    def __call__(self) -> None:
        while self._said.poll():
            self._last = (self._last + os.read(self._said.fileno(), 1 << 16))[-_LONGEST_SAID:]
        if self._lines.due():
            shares = _SHARE.findall(self._last)
            self._lines.say(shares[-1].decode() if shares else "reading the examples")


def _fit(arguments: dict[str, Any], model: Path, quantised: Path | None, says: Connection | None) -> str | None:
    """Train and save; returns fastText's error if it fails. ``says`` receives its standard error."""
    if says is not None:
        os.dup2(says.fileno(), 2)
    # in the child alone, where it may crash
    import fasttext

    try:
        trained = fasttext.train_supervised(**arguments)
        trained.save_model(os.fsencode(model))
        if quantised is not None:
            trained.quantize(qnorm=True, verbose=arguments["verbose"], thread=1)
            trained.save_model(os.fsencode(quantised))
    except (ValueError, RuntimeError, MemoryError) as error:  # the C++ exceptions that its binding passes on
        return " ".join(str(error).split()) or type(error).__name__
    return None

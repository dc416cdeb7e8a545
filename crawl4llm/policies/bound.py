"""Scores from a file that was learnt beforehand from a quarter of the pages: a bound for policies that learn as they
crawl."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path, named_lines
from crawl4llm.policies._policy import EACH, BasePolicy, Candidate, Rating
from crawl4llm.policies._values import Values, finite


class Policy(BasePolicy):
    """Static, from BOUND_SCORES: a score for each page; pages missing from the file score 0."""

    name = "bound"
    partitioned = EACH

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        given = {} if self._options.corpus is None else {"CORPUS": self._options.corpus}
        make = command("corpus", "bound", "--out", "bound.tsv.gz", simulation=True, **given)
        if self._options.bound_scores is None:
            raise InputError(f"BOUND_SCORES is not set; give what was learnt of the corpus beforehand, made by {make}")
        path, rater = given_path(self._options.bound_scores), self._workers.rater
        self._scores = read_bound(path, rater.corpus.identity(), rater.scorer.digest, make)

    def identity(self) -> Mapping[str, object]:
        return {"bound_scores": f"sha256:{self._scores.digest(self.name)}"}

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        return [Rating(self._scores.of(candidate.key) or 0.0) for candidate in candidates]


_MAGIC: Final = "#crawl4llm bound"
_FORMAT: Final = "1"
_HEAD: Final = 5
"""Fields of the first line: magic, format, and SHA-256 of the corpus's identity, the scorer's digest, the other lines.
"""


def bound_text(scores: Mapping[str, float], corpus: str, scorer: str) -> str:
    """Return the text of a file for BOUND_SCORES: a head, then a line a page, the best first.

    ``scores`` are from 0 to 1, by document key; ``corpus`` is the corpus's identity, ``scorer`` the scorer's digest.
    """
    best_first = sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))
    lines = "".join(f"{key}\t{value!r}\n" for key, value in best_first)
    return "\t".join((_MAGIC, _FORMAT, *map(_hashed, (corpus, scorer, lines)))) + f"\n{lines}"


def read_bound(path: Path, corpus: str, scorer: str, make: str) -> Values:
    """Return the scores in a file by document key.

    ``make`` is the command that makes the file of this corpus and scorer. Raises InputError with the path if
    the file is of another corpus or scorer, was cut or changed, or has a score outside of 0 to 1.
    """
    named = f"BOUND_SCORES {path}"
    lines = named_lines("BOUND_SCORES", path)
    magic, *head = next(lines, "").rstrip("\r\n").split("\t")
    if magic != _MAGIC or len(head) != _HEAD - 1 or head[0] != _FORMAT:
        raise InputError(f"{named} is no file of this version's scrapy corpus bound; make one: {make}")
    for of_file, ours, what in zip(head[1:], (corpus, scorer), ("corpus", "scorer"), strict=False):
        if of_file != _hashed(ours):
            raise InputError(f"{named} was made of another {what} than this crawl's; make one of this {what}: {make}")
    whole = hashlib.sha256()

    def scored() -> Iterator[tuple[str, float]]:
        for number, line in enumerate(lines, start=2):
            whole.update(line.encode("utf-8", "surrogatepass"))
            key, tab, value = line.rstrip("\n").partition("\t")
            try:
                score = finite(value) if tab else -1.0
            except ValueError:
                score = -1.0
            if not 0 <= score <= 1:
                raise InputError(f"{named}, line {number}, has no score from 0 to 1; make it again: {make}")
            yield key, score

    found = Values(scored())
    if whole.hexdigest() != head[-1]:
        raise InputError(f"{named} was cut or changed ({len(found):,} lines are left); make it again: {make}")
    return found


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

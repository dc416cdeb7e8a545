"""Plans: all that the trainer reads, made of the texts of runs and targets.

A plan has a tokenizer, which is byte-level BPE or given as a file, and one model of a ladder.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import read_input
from crawl4llm.base.processes import interruptible
from crawl4llm.base.run_folder import write_json
from crawl4llm.base.spread import Spread
from crawl4llm.parts import KnownTexts, record_of
from crawl4llm.scoring import signature_of
from crawl4llm.tools._known_files import TEXT, write_texts
from crawl4llm.tools._text_sources import load_tokenizer, tokenizers_library
from crawl4llm.tools.trainlm.trainer import FORMAT, PLAN, STARTS, TOKENS, Shape

IN_TARGET: Final = "in a target"
BLANK: Final = "without text"
KNOWN: Final = "targets.known"
LARGEST_VOCABULARY: Final = 1 << 16
"""Tokens are stored as 16-bit numbers."""
_TOKENIZER: Final = "tokenizer.json"
_LARGEST: Final = 1 << 26
"""Bytes of a tokenizer's file."""
_ROUNDED: Final = 64
"""Vocabularies are multiples of this, as matrix units like them."""
_FEWEST: Final = 10
"""Texts of a target, at least, of each half."""
_MOST_HELD_OUT: Final = 250_000
"""Tokens of a target on which models are measured, at most; a fixed choice of texts, so that measuring stays cheap."""
_AT_ONCE: Final = 256

Tokens = NDArray[np.uint16]


class Size(NamedTuple):
    """A model with the way in which it is trained."""

    shape: Shape
    batch: int
    """Sequences a step."""
    rate: float
    """The highest learning rate."""

    def with_vocabulary(self, tokens: int) -> Size:
        """Return the model for a tokenizer with this many tokens, the end token included."""
        rounded = -(-tokens // _ROUNDED) * _ROUNDED
        return self._replace(shape=self.shape._replace(vocabulary=rounded))

    def training(self) -> dict[str, float]:
        """Return the trainer's parameters."""
        return {"batch": self.batch, "rate": self.rate, "weight_decay": 0.1, "checkpoint_seconds": 20.0}


SIZES: Final = {
    "50k": Size(Shape(vocabulary=512, width=32, layers=2, heads=2, hidden=128, context=64), batch=16, rate=1e-2),
    "1m": Size(Shape(vocabulary=2048, width=160, layers=2, heads=5, hidden=480, context=256), batch=16, rate=3e-3),
    "5m": Size(Shape(vocabulary=4096, width=384, layers=2, heads=6, hidden=1024, context=256), batch=32, rate=3e-3),
    "25m": Size(Shape(vocabulary=4096, width=768, layers=3, heads=6, hidden=2048, context=512), batch=128, rate=2e-3),
    "120m": Size(Shape(vocabulary=4096, width=1536, layers=4, heads=12, hidden=4096, context=512), 128, rate=1e-3),
}
"""By name. They are wide and shallow, so that few large matrix products do the work; ``50k`` is for tests."""


class Tokenizer:
    """Turns texts into tokens. ``end``, one more than the tokens of the file, stands behind each text."""

    def __init__(self, data: bytes, named: str) -> None:
        """Read a ``tokenizer.json`` of the library tokenizers. Raises InputError."""
        self._loaded = load_tokenizer(_library(), data, named)
        self.end: int = self._loaded.get_vocab_size()
        if self.end >= LARGEST_VOCABULARY:
            raise InputError(f"{named} has {self.end:,} tokens; give one of less than {LARGEST_VOCABULARY:,}")
        self.data = data
        self.digest = hashlib.sha256(data).hexdigest()

    @classmethod
    def of(cls, path: Path) -> Tokenizer:
        """Return the tokenizer in a file. Raises InputError."""
        with as_input_error(f"--tokenizer {path} cannot be read"):
            return cls(read_input(path, _LARGEST), f"--tokenizer {path}")

    @classmethod
    def trained(cls, texts: Iterable[str], vocabulary: int) -> Tokenizer:
        """Return a tokenizer that is trained on texts: the same texts in the same order give the same bytes.

        ``vocabulary`` counts the end token.
        """
        library = _library()
        made = library.Tokenizer(library.models.BPE())
        made.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = library.decoders.ByteLevel()
        alphabet = library.pre_tokenizers.ByteLevel.alphabet()
        trainer = library.trainers.BpeTrainer(
            vocab_size=vocabulary - 1, initial_alphabet=sorted(alphabet), show_progress=False
        )
        interruptible(lambda: made.train_from_iterator(map(_encodable, texts), trainer))
        return cls(made.to_str().encode(), _TOKENIZER)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of each text, the end token last."""
        encoded = self._loaded.encode_batch_fast([*map(_encodable, texts)], add_special_tokens=False)
        return [np.array([*one.ids, self.end], np.uint16) for one in encoded]


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


_library = partial(tokenizers_library, "scrapy trainlm", "trainlm")


class PageText(NamedTuple):
    """A crawled page."""

    text: str | None
    """None if it has no text that may be used."""
    fetched: int
    """Documents that the crawl had fetched with this page."""
    reason: str = ""
    """Why there is no text."""


@dataclass(frozen=True)
class Arm:
    """A run, as training data for a model."""

    name: str
    pages: Iterable[PageText]
    """In crawl order."""
    facts: Mapping[str, Any]
    """Facts of the run that the results repeat."""


@dataclass(frozen=True)
class Target:
    """Held-out texts, and those that the tokenizer may learn from."""

    name: str
    held_out: Sequence[str]
    others: Sequence[str]

    @classmethod
    def of(cls, name: str, texts: Iterator[str]) -> Target:
        """Divide texts, each of which counts once, in two halves by their hashes. Raises InputError for too few."""
        known = {_hash(text, 8): text for text in texts if text.split()}
        ordered = sorted(known.items())
        halves = [[text for digest, text in ordered if digest[-1] % 2 == half] for half in (0, 1)]
        if min(map(len, halves)) < _FEWEST:
            raise InputError(f"--target {name}: has {len(known):,} distinct texts; give at least {4 * _FEWEST}")
        return cls(name, *halves)


@dataclass(frozen=True)
class Asked:
    """The choices that decide a plan, besides the texts."""

    size: Size
    tokens: int
    """T: the tokens of each run on which a model is trained."""
    seeds: int = 3
    points: int = 1
    """Points of the curve: trainings by the first 1/points, 2/points ... of the tokens."""
    tokenizer: Tokenizer | None = None
    """None: one is trained on halves of the targets."""
    curved: Sequence[str] | None = None
    """The runs that get a curve; None: all."""


@dataclass
class Taken:
    """The documents that were taken of a run."""

    documents: list[int] = field(default_factory=list)
    crawled: int = 0
    """Pages that were looked at."""
    left_out: Counter[str] = field(default_factory=Counter)
    ends: list[tuple[int, int, int]] = field(default_factory=lambda: [(0, 0, 0)])
    """Before the first document, and after each: tokens, pages crawled, documents fetched."""

    @property
    def tokens(self) -> int:
        """Tokens of the documents."""
        return self.ends[-1][0]

    def at(self, tokens: int) -> tuple[int, int]:
        """Return the pages and fetches at which the run reaches a number of tokens."""
        return next(end[1:] for end in self.ends if end[0] >= tokens)


def write_plan(folder: Path, arms: Sequence[Arm], targets: Sequence[Target], asked: Asked, request: Any) -> None:
    """Write a plan into an empty folder. ``request``: the facts that identify it, kept with it.

    Raises InputError if a run has too few tokens, and OSError.
    """
    tokenizer = asked.tokenizer or Tokenizer.trained(
        (text for target in targets for text in target.others), asked.size.shape.vocabulary
    )
    size = asked.size.with_vocabulary(tokenizer.end + 1)
    (folder / _TOKENIZER).write_bytes(tokenizer.data)
    known = _known(folder, targets)
    described = [_write_target(folder, place, target, tokenizer) for place, target in enumerate(targets)]
    with (folder / TOKENS).open("wb") as file:
        documents = _Documents(file, tokenizer)
        taken = [_take(arm, documents, known, asked.tokens) for arm in arms]
    np.save(folder / STARTS, np.array(documents.starts, np.int64))
    runs = []
    for place, (arm, run) in enumerate(zip(arms, taken, strict=True)):
        np.save(folder / _order(place), np.array(run.documents, np.int32))
        points = asked.points if asked.curved is None or arm.name in asked.curved else 1
        marks = [asked.tokens * point // points for point in range(1, points + 1)]
        ends = [dict(zip(("tokens", "pages", "fetched"), (mark, *run.at(mark)), strict=True)) for mark in marks]
        told = {"name": arm.name, "documents": len(run.documents), "left_out": dict(sorted(run.left_out.items()))}
        runs.append({**told, "points": ends, "order": _order(place), **arm.facts})
    plan = {
        "format": FORMAT,
        "request": request,
        "tokenizer": tokenizer.digest,
        "end": tokenizer.end,
        "model": size.shape._asdict(),
        "training": size.training(),
        "tokens": asked.tokens,
        "seeds": asked.seeds,
        "targets": described,
        "runs": runs,
        "jobs": list(_jobs(runs, asked.seeds)),
    }
    write_json(folder / PLAN, plan)


def _jobs(runs: Sequence[Mapping[str, Any]], seeds: int) -> Iterator[dict[str, Any]]:
    """Yield the trainings, whole ones of each seed before the points of curves."""
    for whole in (True, False):
        for seed in range(seeds):
            for place, run in enumerate(runs):
                last = run["points"][-1]
                for number, point in enumerate(run["points"]):
                    if (point is last) == whole:
                        name = f"run{place:03d}-point{number}-seed{seed}"
                        told = {"run": place, "point": number, "seed": seed, "tokens": point["tokens"]}
                        yield {"name": name, "order": run["order"], **told}


def _order(place: int) -> str:
    return f"order-{place:03d}.npy"


def _known(folder: Path, targets: Sequence[Target]) -> KnownTexts:
    """Write the sketch of all texts of the targets, by which those of runs are known."""
    texts = (text for target in targets for text in (*target.held_out, *target.others))
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        spread = Spread(Path(scratch, "texts"), TEXT)
        spread.add(np.frombuffer(b"".join(record_of(text, near=True) for text in texts), dtype=TEXT))
        write_texts(spread, Path(scratch), folder / KNOWN, near=True)
    return KnownTexts(folder / KNOWN, named="--target")


def _write_target(folder: Path, place: int, target: Target, tokenizer: Tokenizer) -> dict[str, Any]:
    """Write the held-out tokens of a target, after an end token; return its entry of the plan."""
    parts: list[Tokens] = [np.array([tokenizer.end], np.uint16)]
    count = size = documents = 0
    for text, tokens in _encoded(target.held_out, tokenizer):
        if count + len(tokens) > _MOST_HELD_OUT and count:
            break
        parts.append(tokens)
        count, size, documents = count + len(tokens), size + len(text.encode("utf-8", "replace")), documents + 1
    data = np.concatenate(parts).astype("<u2").tobytes()
    (folder / f"target-{place}.bin").write_bytes(data)
    told = {"name": target.name, "tokens": f"target-{place}.bin", "bytes": size, "texts": documents, "count": count}
    return {**told, "sha256": hashlib.sha256(data).hexdigest()}


def _encoded(texts: Iterable[str], tokenizer: Tokenizer) -> Iterator[tuple[str, Tokens]]:
    """Yield texts with their tokens; some at a time, as few may be wanted of many."""
    left = iter(texts)
    while some := list(islice(left, _AT_ONCE)):
        yield from zip(some, tokenizer.encode(some), strict=True)


class _Documents:
    """The tokens of all runs' documents; a text that comes again has the number that it has."""

    def __init__(self, file: BinaryIO, tokenizer: Tokenizer) -> None:
        self._file, self._tokenizer = file, tokenizer
        self._numbers: dict[bytes, int] = {}
        self.starts = [0]

    def add(self, texts: Sequence[str]) -> list[tuple[int, int]]:
        """Return the number of each text, and its tokens. Raises OSError."""
        digests = [_hash(text, 16) for text in texts]
        fresh = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in self._numbers}
        for digest, tokens in zip(fresh, self._tokenizer.encode([*fresh.values()]), strict=True):
            self._numbers[digest] = len(self.starts) - 1
            self._file.write(tokens.astype("<u2").tobytes())
            self.starts.append(self.starts[-1] + len(tokens))
        numbers = [self._numbers[digest] for digest in digests]
        return [(number, self.starts[number + 1] - self.starts[number]) for number in numbers]


def _take(arm: Arm, documents: _Documents, known: KnownTexts, wanted: int) -> Taken:
    """Take a run's documents until they have enough tokens. Raises InputError if they do not."""
    taken = Taken()
    for page, document in _numbered(arm.pages, documents, known):
        taken.crawled += 1
        if isinstance(document, str):
            taken.left_out[document] += 1
            continue
        number, tokens = document
        taken.documents.append(number)
        taken.ends.append((taken.tokens + tokens, taken.crawled, page.fetched))
        if taken.tokens >= wanted:
            return taken
    why = ", ".join(f"{count:,} {reason}" for reason, count in sorted(taken.left_out.items()))
    less = f"--tokens {taken.tokens} or less, or " if taken.tokens else ""
    raise InputError(
        f"{arm.facts.get('path', arm.name)}: has {taken.tokens:,} tokens of {wanted:,} on {taken.crawled:,} pages"
        f"{f' (left out: {why})' if why else ''}; give {less}a longer run"
    )


def _numbered(
    pages: Iterable[PageText], documents: _Documents, known: KnownTexts
) -> Iterator[tuple[PageText, str | tuple[int, int]]]:
    """Yield pages, each with the number of its document and its tokens, or with why its text is not used."""
    left = iter(pages)
    while some := list(islice(left, _AT_ONCE)):
        reasons = [_left_out(page, known) for page in some]
        used = documents.add(
            [page.text for page, reason in zip(some, reasons, strict=True) if not reason and page.text]
        )
        numbers = iter(used)
        yield from ((page, reason or next(numbers)) for page, reason in zip(some, reasons, strict=True))


def _left_out(page: PageText, known: KnownTexts) -> str:
    """Return why a page's text is not used; empty if it is."""
    if page.text is None:
        return page.reason
    if not page.text.split():
        return BLANK
    return IN_TARGET if known.knows(page.text, signature_of(page.text)) else ""


def _hash(text: str, size: int) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).digest()

"""The fastText scorer: DCLM's recipe, on models that were trained here; and model files that are damaged."""

from __future__ import annotations

import csv
import gzip
import hashlib
import itertools
import os
import pickle
import random
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import fasttext
import pytest

from crawl4llm.base.errors import InputError
from crawl4llm.scoring.fasttext_file import inspect_model
from crawl4llm.scoring.fasttext_scorer import FastTextScorer, one_line
from simulate.clueweb22.corpus import ClueWeb22Corpus

HQ = "__label__hq"
WORDS = {
    HQ: "therefore essay argument because chapter reader".split(),
    "__label__cc": "cart login menu buy click reader".split(),
    "__label__größe": "größe farbe wählen menge buy reader".split(),
}
PLACES_OF_ARGUMENTS = {"dim": 2, "loss": 8, "model": 9, "bucket": 10}
"""Where some of a model's arguments stand in its file, in 32-bit words."""

WILD_SIZES = [-(2**31), -5, 1, 10**6, 2**31 - 1]

DAMAGED = r"^SCORER_MODEL .*{} is damaged or cut short; fetch or train it again$"
NO_MODEL = r"^SCORER_MODEL .*{} is not a fastText model; give the path of a .bin or .ftz file$"


class Trained(NamedTuple):
    """A model in a file, and as fastText has it."""

    path: Path
    model: Any


def train(folder: Path, name: str, lines: list[str], **options: Any) -> Trained:
    """Train a classifier; with one thread, the same each time."""
    text, path = folder / f"{name}.txt", folder / f"{name}.bin"
    text.write_text("\n".join(lines), encoding="utf-8")
    common = {"dim": 6, "epoch": 5, "lr": 0.5, "wordNgrams": 2, "bucket": 400, "minCount": 1, "thread": 1, "verbose": 0}
    model = fasttext.train_supervised(str(text), **{**common, **options})
    model.save_model(str(path))
    return Trained(path, model)


def quantise(trained: Trained, name: str, **options: Any) -> Trained:
    """A quantised copy of a model."""
    path = trained.path.with_name(name)
    model = fasttext.load_model(str(trained.path))
    model.quantize(**options)
    model.save_model(str(path))
    return Trained(path, model)


def sentences(*labels: str) -> list[str]:
    draw = random.Random(0)
    return [f"{label} {' '.join(draw.choices(WORDS[label], k=10))}" for label in labels * 150]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trained]:
    """Models of all layouts a file may have."""
    folder = tmp_path_factory.mktemp("models")
    two = train(folder, "two", sentences(HQ, "__label__cc"))
    three = train(folder, "three", sentences(*WORDS))
    words = [word for some in WORDS.values() for word in some]
    draw = random.Random(0)
    many_lines = [f"__label__{n % 300} {' '.join(draw.choices(words, k=4))}" for n in range(900)]
    many = train(folder, "many", many_lines, epoch=1)  # an output matrix is quantised from 256 labels on
    return {
        "two": two,
        "three": three,
        "many": many,
        "hierarchical": train(folder, "hierarchical", sentences(*WORDS), loss="hs"),
        "one against all": train(folder, "ova", sentences(*WORDS), loss="ova"),
        "subwords": train(folder, "subwords", sentences(*WORDS), minn=2, maxn=3),
        "quantised": quantise(two, "plain.ftz"),
        "qnorm": quantise(three, "qnorm.ftz", qnorm=True),
        "cutoff": quantise(three, "cutoff.ftz", cutoff=300),
        "qout": quantise(many, "qout.ftz", qout=True),
        "everything": quantise(many, "everything.ftz", qnorm=True, qout=True, cutoff=300, dsub=3),
    }


@pytest.fixture(scope="module")
def two(models: dict[str, Trained]) -> Trained:
    return models["two"]


KINDS = ["two", "three", "many", "hierarchical", "one against all", "subwords"]
KINDS_QUANTISED = ["quantised", "qnorm", "cutoff", "qout", "everything"]


# -- what a file says of itself ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS + KINDS_QUANTISED)
def test_labels_and_digest(models: dict[str, Trained], kind: str) -> None:
    path, model = models[kind]
    seen = inspect_model(path)
    assert list(seen.labels) == model.get_labels()
    assert seen.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert seen.path == path


def test_models_really_are_of_different_layouts(models: dict[str, Trained]) -> None:
    assert [models[kind].model.is_quantized() for kind in KINDS + KINDS_QUANTISED] == [False] * 6 + [True] * 5
    pruned = [struct.unpack_from("<q", models[kind].path.read_bytes(), 84)[0] > 0 for kind in KINDS_QUANTISED]
    assert pruned == [False, False, True, False, True]


@pytest.mark.parametrize("kind", ["two", "subwords", "everything", "cutoff"])
def test_every_file_that_was_cut_short_is_refused(models: dict[str, Trained], kind: str, tmp_path: Path) -> None:
    data = models[kind].path.read_bytes()
    lengths = [*range(8, 120), *range(120, len(data), 97), *range(len(data) - 30, len(data))]
    path = tmp_path / "cut.bin"
    began = time.process_time()
    for length in lengths:
        path.write_bytes(data[:length])
        with pytest.raises(InputError, match=DAMAGED.format("cut.bin")):
            inspect_model(path)
    assert (time.process_time() - began) / len(lengths) < 0.05


@pytest.mark.parametrize("length", range(8))
def test_a_few_bytes_are_no_model(two: Trained, tmp_path: Path, length: int) -> None:
    path = tmp_path / "few.bin"
    path.write_bytes(two.path.read_bytes()[:length])
    with pytest.raises(InputError, match=NO_MODEL.format("few.bin")):
        inspect_model(path)


@pytest.mark.parametrize(
    "content",
    [
        b"\0" * 1000,
        b"\xff" * 1000,
        b"hello, world\n" * 100,
        gzip.compress(b"model" * 1000, mtime=0),  # no clock in the test's name
        b"version https://",
    ],
)
def test_another_file_is_no_model(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(content)
    with pytest.raises(InputError, match=NO_MODEL.format("other.bin")):
        inspect_model(path)


def test_a_file_of_another_version_is_refused(two: Trained, tmp_path: Path) -> None:
    path = tmp_path / "new.bin"
    path.write_bytes(struct.pack("<ii", 793712314, 13) + two.path.read_bytes()[8:])
    with pytest.raises(InputError, match=r"^SCORER_MODEL .*new.bin has fastText file version 13; only 12 can be read$"):
        inspect_model(path)


def test_a_large_file_cut_short_is_refused_at_once(shared: Callable[[str], Path], tmp_path: Path) -> None:
    data = shared("scorers/prose.bin").read_bytes()
    path = tmp_path / "large.bin"
    for length in (len(data) // 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        began = time.process_time()
        with pytest.raises(InputError, match=DAMAGED.format("large.bin")):
            inspect_model(path)
        assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("field", "offset", "size"),
    [
        *itertools.product(["entries"], [64], WILD_SIZES),
        *itertools.product(["words"], [68], WILD_SIZES),
        *itertools.product(["labels"], [72], WILD_SIZES),
        *itertools.product(["pruned entries"], [84], WILD_SIZES[2:]),  # negative: none
    ],
)
def test_sizes_that_cannot_be_are_refused(two: Trained, tmp_path: Path, field: str, offset: int, size: int) -> None:
    data = bytearray(two.path.read_bytes())
    struct.pack_into("<q" if field == "pruned entries" else "<i", data, offset, size)
    path = tmp_path / "wild.bin"
    path.write_bytes(data)
    began = time.process_time()
    with pytest.raises(InputError, match=DAMAGED.format("wild.bin")):
        inspect_model(path)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("argument", "value"), [("dim", 3), ("dim", 1000), ("bucket", 0), ("bucket", 10**6), ("loss", 9)]
)
def test_arguments_that_do_not_fit_the_matrices_are_refused(
    two: Trained, tmp_path: Path, argument: str, value: int
) -> None:
    """Loading such a file ends the interpreter, or fails on every page."""
    data = bytearray(two.path.read_bytes())
    struct.pack_into("<i", data, 4 * PLACES_OF_ARGUMENTS[argument], value)
    path = tmp_path / "misfit.bin"
    path.write_bytes(data)
    with pytest.raises(InputError, match=DAMAGED.format("misfit.bin")):
        inspect_model(path)


def test_word_vectors_are_no_classifier(tmp_path: Path) -> None:
    text, path = tmp_path / "words.txt", tmp_path / "vectors.bin"
    text.write_text("\n".join(sentences(HQ)))
    fasttext.train_unsupervised(str(text), dim=4, epoch=1, bucket=100, minCount=1, thread=1, verbose=0).save_model(
        str(path)
    )
    with pytest.raises(InputError, match=r"^SCORER_MODEL .*vectors.bin .*no classifier"):
        FastTextScorer(path, HQ)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^SCORER_MODEL .*none.bin cannot be read: No such file or directory$"):
        inspect_model(tmp_path / "none.bin")
    with pytest.raises(InputError, match=r"^SCORER_MODEL .* cannot be read: Is a directory$"):
        inspect_model(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InputError, match=r"^SCORER_MODEL .*/fifo cannot be read: it is a FIFO, not a regular file$"):
        inspect_model(tmp_path / "fifo")


@pytest.mark.parametrize("content", ["", "a model"])
def test_an_enormous_file_is_refused_before_it_is_read(two: Trained, tmp_path: Path, content: str) -> None:
    path = tmp_path / "enormous.bin"
    path.write_bytes(two.path.read_bytes() if content else b"")
    os.truncate(path, 200_000_000_000)
    fault = "is longer than it says; fetch or train it again" if content else "is not a fastText model"
    with pytest.raises(InputError, match=rf"^SCORER_MODEL .*/enormous.bin {fault}"):
        inspect_model(path)


# -- scores -----------------------------------------------------------------------------------------------------------

TEXTS = [
    "therefore the reader",
    "  \n therefore\nessay\r\nargument\x0bbecause\u2028chapter \n\n",
    "click\n\nbuy\tlogin\u00a0cart",
    "words that were never seen",
    "größe farbe \N{SNOWMAN} \U0001f600",
    "__label__hq __label__cc",
    "</s> therefore </s> cart",
    "a\0b",
    "therefore " * 5000,
]


def raw_probability(model: Any, text: str, label: str) -> float:
    """By fastText's own interface, and the recipe's words: strip, join the lines with one space, predict."""
    labels, probabilities = model.predict(" ".join(text.strip().splitlines()), k=-1)
    return float(dict(zip(labels, probabilities, strict=True)).get(label, 0.0))


@pytest.mark.parametrize("kind", ["two", "three", "hierarchical", "one against all", "subwords", "quantised", "cutoff"])
def test_scores_are_the_probability_of_the_label(models: dict[str, Trained], kind: str) -> None:
    path, model = models[kind]
    for label in model.get_labels():
        scores = FastTextScorer(path, label).score(TEXTS)
        assert scores == [min(max(raw_probability(model, text, label), 0.0), 1.0) for text in TEXTS]


def test_good_text_scores_high_in_a_model_of_three_labels(models: dict[str, Trained]) -> None:
    path = models["three"].path
    texts = [" ".join(words) for words in WORDS.values()]
    good, plain, other = FastTextScorer(path, HQ).score(texts)
    assert good > 0.8
    assert plain < 0.2
    assert other < 0.2
    assert FastTextScorer(path, "__label__größe").score(texts)[2] > 0.8


def test_a_probability_beyond_1_is_clipped(models: dict[str, Trained]) -> None:
    path, model = models["one against all"]
    text = " ".join(WORDS[HQ][:5] * 20)
    assert raw_probability(model, text, HQ) > 1
    assert FastTextScorer(path, HQ).score([text]) == [1.0]


@pytest.mark.parametrize("text", ["", " ", "\n", " \t\r\n\x0b\x0c\x1c\x85\u00a0\u2028\u3000 "])
def test_text_without_a_word_scores_0(two: Trained, text: str) -> None:
    assert FastTextScorer(two.path, HQ).score(["therefore", text])[1:] == [0.0]


def test_every_line_break_of_unicode_is_a_space() -> None:
    breaks = [chr(code) for code in range(0x110000) if len(f"a{chr(code)}b".splitlines()) > 1]
    assert len(breaks) > 5
    for one in breaks:
        text = f" a{one}b\n\nc\r\nd{one}{one}\u00e9{one}"
        assert one_line(text) == " ".join(text.strip().splitlines())
        assert one_line(f"a{one}\nb") == " ".join(f"a{one}\nb".splitlines())


def test_half_a_surrogate_pair_is_one_unknown_character(two: Trained) -> None:
    """JSON may hold one: a string that was cut between the two."""
    scorer = FastTextScorer(two.path, HQ)
    assert scorer.score(["therefore essay \ud83d"]) == scorer.score(["therefore essay ?"])


def test_many_texts_have_one_score_each(two: Trained) -> None:
    scorer = FastTextScorer(two.path, HQ)
    assert scorer.score([]) == []
    assert scorer.score(TEXTS) == [scorer.score([text])[0] for text in TEXTS]


def test_a_pickled_scorer_scores_the_same(models: dict[str, Trained]) -> None:
    for kind in ("two", "everything"):
        path, model = models[kind]
        scorer = FastTextScorer(path, model.get_labels()[0])
        pickled = pickle.dumps(scorer)
        assert len(pickled) < path.stat().st_size / 5, "the model itself need not travel"
        assert pickle.loads(pickled).score(TEXTS) == scorer.score(TEXTS)


def test_a_label_that_the_model_lacks(models: dict[str, Trained]) -> None:
    path = models["three"].path
    with pytest.raises(InputError) as error:
        FastTextScorer(path, "hq")
    labels = ", ".join(models["three"].model.get_labels())
    assert str(error.value) == f"SCORER_LABEL 'hq' is not a label of {path}; its labels are: {labels}"


def test_loading_and_scoring_print_nothing(two: Trained, capfd: pytest.CaptureFixture[str]) -> None:
    FastTextScorer(two.path, HQ).score(TEXTS)
    assert capfd.readouterr() == ("", "")


# -- a real model on real pages ---------------------------------------------------------------------------------------


@pytest.fixture
def reference(shared: Callable[[str], Path]) -> Iterator[dict[str, float]]:
    """The published implementation's scores, by id."""
    with gzip.open(shared("reference-runs/scores.tsv.gz"), "rt") as file:
        yield {row["docid"]: float(row["score"]) for row in csv.DictReader(file, delimiter="\t")}


def test_scores_are_those_of_the_published_implementation(
    shared: Callable[[str], Path], reference: dict[str, float]
) -> None:
    corpus = ClueWeb22Corpus(shared("clueweb22-real"))
    keys = random.Random(0).sample(sorted(reference), 500)
    scores = FastTextScorer(shared("scorers/prose.bin"), HQ).score([corpus.text(key) for key in keys])
    # of two labels it predicts the better one, and takes 1 - P(cc); fastText adds 1e-5 to each
    assert scores == pytest.approx([reference[key] for key in keys], rel=0, abs=2.1e-5)
    assert all(0 <= score <= 1 for score in scores)
    corpus.close()

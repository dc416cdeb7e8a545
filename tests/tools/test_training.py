"""Training an influence model: what it learns, that it always learns the same, and what is refused."""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_helpers import GOOD, OTHER, run_training, texts, write_jsonl
from warc_helpers import http, page, record, response, url_of, write

from crawl4llm.base.errors import InputError
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.tools._fit import NEGATIVE, POSITIVE, Recipe
from crawl4llm.tools._text_sources import jsonl_texts, parquet_texts
from crawl4llm.tools.trainscorer import Example, Examples, training_line
from crawl4llm.tools.trainscorer.card import measure

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Files of positive and of negative texts."""
    folder = tmp_path_factory.mktemp("sources")
    positive = write_jsonl(folder / "good.jsonl.gz", texts(GOOD, 300))
    negative = write_jsonl(folder / "other.jsonl", texts(OTHER, 500))
    return positive, negative


@pytest.fixture(scope="module")
def trained(sources: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and its quantised brother."""
    out = tmp_path_factory.mktemp("trained") / "not UTF-8: \udcff" / "model"
    run_training(sources[:1], sources[1:], out, quantize=True, held_out=0.2)
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- the model --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model.bin", "model.ftz"])
def test_it_tells_the_classes_apart(trained: Path, name: str) -> None:
    found = json.loads((trained / "evaluation.json").read_text())[name]
    assert found["average_precision"] > 0.97
    half = next(at for at in found["thresholds"] if at["threshold"] == 0.5)
    assert min(half["precision"], half["recall"], half["f1"]) > 0.9
    assert found["expected_calibration_error"] < 0.2
    assert 30 < found["positive"] < 90
    assert 60 < found["negative"] < 140
    scorer = FastTextScorer(trained / name, POSITIVE)
    good, other = scorer.score([*texts(GOOD, 1, seed=1), *texts(OTHER, 1, seed=1)])
    assert good - other > 0.5


def test_the_quantised_one_is_smaller(trained: Path) -> None:
    assert (trained / "model.ftz").stat().st_size < (trained / "model.bin").stat().st_size


def test_the_same_again_gives_the_same_bytes(sources: tuple[Path, Path], trained: Path, tmp_path: Path) -> None:
    run_training(sources[:1], sources[1:], tmp_path / "again", quantize=True, held_out=0.2)
    assert contents(tmp_path / "again") == contents(trained)


def test_neither_order_nor_files_nor_repetitions_matter_but_the_seed_does(trained: Path, tmp_path: Path) -> None:
    good, other = texts(GOOD, 300), texts(OTHER, 500)
    random.Random(1).shuffle(good)
    one = write_jsonl(tmp_path / "one.jsonl", good[:100], "body")
    two = write_jsonl(tmp_path / "two.jsonl", [*good[90:], *reversed(good[:9])], "body")
    rest = tmp_path / "rest.jsonl.zst"
    rest.write_bytes(zstd.compress(write_jsonl(tmp_path / "rest.jsonl", [good[0], *other[::-1]], "body").read_bytes()))
    lines = run_training([one, two], [rest], tmp_path / "model", field="body", held_out=0.2)
    assert (tmp_path / "model" / "model.bin").read_bytes() == (trained / "model.bin").read_bytes()
    assert "positive  300 distinct, 19 duplicate" in lines
    assert "negative  500 distinct, 1 also positive" in lines
    run_training([one, two], [rest], tmp_path / "other", field="body", held_out=0.2, seed=1)
    assert (tmp_path / "other" / "model.bin").read_bytes() != (trained / "model.bin").read_bytes()


def test_the_card_names_data_recipe_and_figures(sources: tuple[Path, Path], trained: Path) -> None:
    card = (trained / "MODEL_CARD.md").read_text()
    figures = json.loads((trained / "evaluation.json").read_text())
    rules = json.loads((trained / "model.ftz.json").read_text())
    assert all(str(source) in card for source in sources)
    for wanted in ("Positive (`__label__hq`): 300 texts", "| wordNgrams | 2 |", rules["model_digest"].split(":")[1]):
        assert wanted in card
    for model in figures.values():
        assert f"average precision {model['average_precision']:.4f}" in card
    assert set(contents(trained)) == {
        *("model.bin", "model.bin.json", "model.ftz", "model.ftz.json"),
        *("MODEL_CARD.md", "calibration.svg", "evaluation.json"),
    }
    assert (trained / "calibration.svg").read_text().startswith("<?xml")
    assert rules["extractor"] is None
    assert "set `TEXT_EXTRACTOR` to their extractor" in card


# -- examples ---------------------------------------------------------------------------------------------------------


def split(folder: Path, positive: list[str], negative: list[str], **recipe: Any) -> tuple[list[Example], list[Example]]:
    with (folder / "texts").open("w+b") as file:
        examples = Examples(file, Recipe(**recipe))
        for text in positive:
            examples.add(text, positive=True)
        for text in negative:
            examples.add(text, positive=False)
        training, held_out = examples.split()
        return list(examples.in_order(training)), list(examples.in_order(held_out))


def test_no_text_is_on_both_sides(tmp_path: Path) -> None:
    good, other = texts(GOOD, 400), texts(OTHER, 600)
    respelt = [f"  {text}\r\n".replace("\n", "\r\n") for text in good]
    train, held_out = split(tmp_path, good + respelt, other, held_out=0.3)
    assert len(train) + len(held_out) == 1000
    assert not {example.line for example in train} & {example.line for example in held_out}
    assert 0.25 < len(held_out) / 1000 < 0.35
    assert 0.3 < sum(example.positive for example in train[:300]) / 300 < 0.5, "classes are not mixed"
    larger = split(tmp_path, good[:350], other, held_out=0.3)[1]
    assert {example.line for example in larger} <= {example.line for example in held_out}, "a side is not for ever"


def test_balanced_classes(tmp_path: Path) -> None:
    sides = split(tmp_path, texts(GOOD, 200), texts(OTHER, 600), balance=True, held_out=0.5)
    assert Counter(example.positive for side in sides for example in side) == {True: 200, False: 200}
    kept = [sum(not example.positive for example in side) for side in sides]
    assert min(kept) > 70, "what is dropped has to do with the side"


def test_words_that_look_like_labels_teach_nothing(tmp_path: Path) -> None:
    """fastText would learn such a text as one of both classes; when it scores, it passes over the word."""
    poisoned = [f"{NEGATIVE} {text}\t{NEGATIVE} x{POSITIVE} </s> {NEGATIVE}" for text in texts(GOOD, 30)]
    train, held_out = split(tmp_path, poisoned, texts(OTHER, 30))
    for example in train + held_out:
        words = training_line(example).split()
        assert words[0] == (POSITIVE if example.positive else NEGATIVE)
        assert not [word for word in words[1:] if word.startswith("__label__")]
        assert training_line(example).count("\n") == 1


# -- measures ---------------------------------------------------------------------------------------------------------


def test_measures_by_hand() -> None:
    scores = np.array([0.95, 0.9, 0.9, 0.4, 0.1, 0.05])
    truth = np.array([True, True, False, True, False, False])
    found = measure(scores, truth)
    assert found.average_precision == pytest.approx((1 / 1 + 2 / 3 + 3 / 4) / 3)
    half = next(at for at in found.thresholds if at.threshold == 0.5)
    assert (half.share, half.precision, half.recall, half.f1) == pytest.approx((0.5, 2 / 3, 2 / 3, 2 / 3))
    assert next(at for at in found.thresholds if at.threshold == 0.99).precision is None
    # bins: 0.05 (1 text, 0 good), 0.1 (1, 0), 0.4 (1, 1), and 0.9 and above (3, two of them good)
    assert found.expected_calibration_error == pytest.approx((0.05 + 0.1 + 0.6 + abs(2.75 - 2)) / 6)
    assert measure(np.array([1.0, 0.0]), np.array([True, False])).expected_calibration_error == 0


# -- sources ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("a.jsonl", b'{"text": "one"}\n\n{"text": \n', "line 3: is not JSON; give one JSON object a line"),
        ("a.jsonl", b'{"text": "\xff"}', "line 1: is not JSON; give one JSON object a line"),
        ("a.jsonl", b"[" * 100_000, "line 1: is not JSON; give one JSON object a line"),
        ("a.jsonl", b'"one"', "line 1: is no JSON object; give objects with a field 'text'"),
        ("a.json", b'{"body": "one"}', "line 1: has no field 'text'; name the one with the text: --text-field NAME"),
        ("a.jsonl", b'{"text": "one"}\n{"text": null}', "line 2: its field 'text' is no text, but NoneType"),
        ("a.jsonl.gz", b"no gzip", "line 1: is not JSON; give one JSON object a line"),
        ("a.jsonl.zst", b"no zstd", "line 1: is not JSON; give one JSON object a line"),
    ],
    ids=["cut", "encoding", "nested", "string", "field", "null", "gzip", "zstd"],
)
def test_bad_json_lines(tmp_path: Path, name: str, content: bytes, fault: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        list(jsonl_texts(path, "text"))
    assert f"{path}" in str(refused.value)
    assert fault in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("compress", [None, zstd.compress], ids=["gz", "zst"])
def test_json_lines_cut_short(tmp_path: Path, compress: Callable[[bytes], bytes] | None) -> None:
    lines = write_jsonl(tmp_path / "whole.jsonl", texts(GOOD, 2000)).read_bytes()
    packed = compress(lines) if compress else write_jsonl(tmp_path / "a.jsonl.gz", texts(GOOD, 2000)).read_bytes()
    path = tmp_path / ("cut.jsonl.zst" if compress else "cut.jsonl.gz")
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match=rf"^{path}: cannot be read after line \d+: .*ended before"):
        list(jsonl_texts(path, "text"))


def test_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs the extra parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"text": ["one", "two", None], "n": [1, 2, 3]}), path)
    found = parquet_texts(path, "text")
    assert [next(found), next(found)] == ["one", "two"]
    with pytest.raises(InputError, match=rf"^{path}, row 3: its field 'text' is no text, but NoneType$"):
        next(found)
    with pytest.raises(
        InputError, match=rf"^{path}: has no column 'body', but text, n; name the column of texts: --text"
    ):
        list(parquet_texts(path, "body"))
    with pytest.raises(InputError, match=rf"^{path}, row 1: its field 'n' is no text, but int$"):
        list(parquet_texts(path, "n"))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=rf"^{path}: cannot be read after row 0: "):
        list(parquet_texts(path, "text"))


def test_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTML is extracted, the text of conversions is taken as it is, what is damaged is passed over and counted."""
    monkeypatch.chdir(tmp_path)  # where the index goes
    body = "<!doctype html><title>x</title><main><p>{}</p></main>".format
    pages = [response(url_of(number), http(body(text).encode())) for number, text in enumerate(texts(GOOD, 30))]
    good = write(tmp_path / "run" / "warc" / "good.warc.gz", page(1000), *pages)
    damaged = bytearray(good.read_bytes())
    damaged[damaged.index(b"\x1f\x8b\x08", len(damaged) // 2) + 30] ^= 0xFF
    good.write_bytes(damaged)
    other = write(
        tmp_path / "other.warc.wet.gz",
        *(
            record("conversion", url_of(number), text.encode(), ["Content-Type: text/plain"])
            for number, text in enumerate(texts(OTHER, 30))
        ),
    )
    pytest.importorskip("resiliparse", reason="needs the extra resiliparse")
    lines = run_training(
        [good.parent.parent], [other], tmp_path / "model", settings={"TEXT_EXTRACTOR": "resiliparse"}, held_out=0.3
    )
    assert f"positive  {good.parent.parent} (archive files): 1 damaged, 30 texts" in lines
    assert f"negative  {other} (archive files): 30 texts" in lines
    rules = json.loads((tmp_path / "model" / "model.bin.json").read_text())
    assert rules["extractor"] == "resiliparse"


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("positive", "negative", "fault"),
    [
        (300, 0, "--negative: no text; both classes are needed, of at least 20 texts each"),
        (0, 300, "--positive: no text; both classes are needed, of at least 20 texts each"),
        (19, 300, "--positive: only 19 distinct texts; give at least 20"),
    ],
)
def test_too_few_texts(tmp_path: Path, positive: int, negative: int, fault: str) -> None:
    good = write_jsonl(tmp_path / "good.jsonl", [*texts(GOOD, positive), "", " \n"])
    other = write_jsonl(tmp_path / "other.jsonl", texts(OTHER, negative))
    with pytest.raises(InputError) as refused:
        run_training([good], [other], tmp_path / "model")
    assert str(refused.value) == fault
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.jsonl", "other.jsonl"]


def test_none_held_out(sources: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^--positive: none of 300 texts is held out; give more texts, or another"):
        run_training(sources[:1], sources[1:], tmp_path / "model", held_out=1e-6)


def test_what_fasttext_refuses(sources: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^fastText cannot train on this: "):
        run_training(sources[:1], sources[1:], tmp_path / "model", rate=1e6)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("out", ["full", "file", "model.bin"])
def test_an_output_that_exists(sources: tuple[Path, Path], tmp_path: Path, out: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "model.bin").touch()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=rf"^--out {tmp_path / out}: "):
        run_training(sources[:1], sources[1:], tmp_path / out)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "no.such: cannot be read: No such file or directory"),
        ("a FIFO", "no.such: cannot be read: it is a FIFO, not a regular file"),
        (b"a sentence\nanother one\n", "no.such: read as a list of ids, because it is no JSON Lines"),
        (b"\0\x01\x02\xff" * 100, "no.such: read as a list of ids, because it is no JSON Lines"),
    ],
)
def test_a_source_of_no_kind(
    shared: Callable[[str], Path], sources: tuple[Path, Path], tmp_path: Path, content: bytes | str | None, fault: str
) -> None:
    path = tmp_path / "no.such"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        os.mkfifo(path)
    with pytest.raises(InputError, match=fault):
        run_training([path], sources[1:], tmp_path / "model", settings={"CORPUS": shared("clueweb22-sample")})


def test_a_clueweb22_tree_is_too_much(
    shared: Callable[[str], Path], sources: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"is a ClueWeb22 tree; give a file with ids of its documents, and -s CORPUS="):
        run_training([shared("clueweb22-sample")], sources[1:], tmp_path / "model")


def test_text_files_are_named_singly(sources: tuple[Path, Path], tmp_path: Path) -> None:
    for given in (sources[0].parent, sources[0].parent / "*.jsonl*"):
        with pytest.raises(InputError, match="holds no archive files; name JSON Lines and Parquet files one by one"):
            run_training([given], sources[1:], tmp_path / "model")


def test_ids_that_cannot_be_used_are_counted(
    shared: Callable[[str], Path], sources: tuple[Path, Path], tmp_path: Path
) -> None:
    corpus = shared("clueweb22-sample")
    ids = tmp_path / "ids.txt"
    good = [f"clueweb22-en0000-00-{number:05d}" for number in range(100)]
    ids.write_text("\n".join([*good, good[0], "clueweb22-en0000-99-99999", "no id"]))
    given = run_training([ids], sources[1:], tmp_path / "model", held_out=0.3, settings={"CORPUS": corpus})
    assert given[0].endswith("1 unknown ids")
    assert "1 duplicate ids, 1 malformed ids" in (tmp_path / "model" / "MODEL_CARD.md").read_text()


def test_an_archive_of_which_nothing_can_be_read(
    sources: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "empty.warc.gz"
    path.touch()
    with pytest.raises(InputError, match=rf"^{path}: no HTML pages and no texts in 1 files \(.*is empty"):
        run_training([path], sources[1:], tmp_path / "model")

"""Token counts and languages in exports, by files of the user's."""

from __future__ import annotations

import json
from pathlib import Path

import fasttext
import pytest
from crawl_helpers import error_of, scrapy
from export_helpers import Page, documents, manifest, run_export, write_run

from crawl4llm.base.domains import Domain
from crawl4llm.base.errors import InputError
from crawl4llm.base.tables import text_lines
from crawl4llm.tools.archive.removal import purge_export

TEXTS = {"en": "the river runs to the sea and the market opens", "de": "der Fluss und das Meer und der Markt"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages in two languages, of which the archive does not tell; one says that it is in another."""
    pages = [Page(f"key-{number}", f"{TEXTS['en']} {number}") for number in range(3)]
    pages += [Page(f"key-{number}", f"{TEXTS['de']} {number}", host="andere.example.net") for number in range(3, 5)]
    pages[2] = pages[2]._replace(language="fr")
    return write_run(tmp_path_factory.mktemp("tokens") / "run", pages)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer for which each letter but blanks is a token, with a mark at either end and at most four tokens."""
    library = pytest.importorskip("tokenizers", reason="needs the extra export")
    made = library.Tokenizer(library.models.BPE({"[U]": 0, "[E]": 1}, [], unk_token="[U]"))
    made.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
    made.post_processor = library.processors.TemplateProcessing(single="[E] $A [E]", special_tokens=[("[E]", 1)])
    made.enable_truncation(4)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return path


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("languages")
    (folder / "lines").write_text("".join(f"__label__{code} {text}\n" for code, text in TEXTS.items()) * 50)
    model = fasttext.train_supervised(str(folder / "lines"), dim=8, epoch=20, lr=0.5, thread=1, verbose=0)
    model.save_model(str(folder / "lid.bin"))
    return folder / "lid.bin"


def letters(text: str) -> int:
    return len("".join(text.split()))


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_tokens_of_documents_files_and_all(form: str, run: Path, tokenizer: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    lines = run_export(out, run, tokenizer=str(tokenizer), format=form, shard_documents=3)
    if form == "jsonl":
        written = documents(out)
    else:
        parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra export")
        tables = [parquet.read_table(path) for path in sorted((out / "documents").iterdir())]
        written = [row for table in tables for row in table.to_pylist()]
    assert [row["tokens"] for row in written] == [letters(row["text"]) for row in written]
    told = manifest(out)
    total = sum(row["tokens"] for row in written)
    assert told["tokens"]["tokenizer"] == sum(shard["tokens"] for shard in told["shards"]) == total
    assert f"({total:,} tokens)" in lines[0]
    assert f"({total:,} tokens by the tokenizer" in (out / "README.md").read_text()
    list(text_lines(purge_export(out, Domain("andere.example.net"))))
    assert manifest(out)["tokens"]["tokenizer"] == sum(row["tokens"] for row in written[:3])


def test_without_a_tokenizer_there_is_no_such_field(run: Path, tmp_path: Path) -> None:
    run_export(tmp_path / "out", run, format="jsonl")
    assert "tokens" not in documents(tmp_path / "out")[0]
    told = manifest(tmp_path / "out")
    assert told["tokens"].keys() == {"words"}
    assert "tokens" not in told["shards"][0]
    assert not {"tokenizer", "language_model"} & told["settings"].keys()
    assert "`tokens`" not in (tmp_path / "out/README.md").read_text()


def test_languages_that_the_archive_does_not_tell(run: Path, languages: Path, tmp_path: Path) -> None:
    run_export(tmp_path / "out", run, language_model=str(languages), format="jsonl")
    assert [row["language"] for row in documents(tmp_path / "out")] == ["en", "en", "fr", "de", "de"]
    assert manifest(tmp_path / "out")["settings"]["language_model_digest"]
    run_export(tmp_path / "german", run, language_model=str(languages), languages=("de",), format="jsonl")
    assert [row["id"] for row in documents(tmp_path / "german")] == ["key-3", "key-4"]


def test_files_that_are_none(run: Path, tokenizer: Path, tmp_path: Path) -> None:
    odd = tmp_path / "odd.json"
    odd.write_text(json.dumps({"version": "1.0"}))
    for given, named in ((tmp_path / "none.json", "cannot be read"), (odd, "is no tokenizer.json")):
        with pytest.raises(InputError, match=f"^--tokenizer {given} {named}"):
            run_export(tmp_path / "out", run, tokenizer=str(given))
    told = error_of(scrapy("export", str(run), "--out", str(tmp_path / "out"), "--language-model", str(odd)))
    assert told.startswith(f"--language-model {odd} is not a fastText model")
    assert not (tmp_path / "out").exists()

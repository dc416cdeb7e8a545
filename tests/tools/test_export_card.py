"""The dataset card of an export: the ``datasets`` library reads an export by it, and what it says stays true."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web
from dataset_helpers import done
from export_helpers import Page, documents, files, manifest, pages, run_export, write_run

from crawl4llm.base.domains import Domain
from crawl4llm.base.errors import InputError
from crawl4llm.scoring.fasttext_scorer import FastTextScorer
from crawl4llm.tools.archive.removal import purge_export
from crawl4llm.tools.export import export as export_module, formats, shards
from crawl4llm.tools.export.card import _size, card
from crawl4llm.tools.export.formats import FORMATS

HOSTILE = 'no|<script>\n---\n- "x": [y]\\ `code` https://evil.example \x1b[2J'
"""What an archive may call a language."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the first half of its pages neither language nor influence is known: a reader would take both for nothing."""
    known = [
        page._replace(language=None, influence=None) if number < 20 else page for number, page in enumerate(pages(40))
    ]
    odd = known[30]._replace(language=HOSTILE)
    languages = ["en", "en-GB", "no", "zho,eng"]
    crawled = [
        page._replace(language=languages[number % 4]) if number >= 20 else page for number, page in enumerate(known)
    ]
    return write_run(tmp_path_factory.mktemp("card") / "run", [*crawled[:30], odd, *crawled[31:]])


def head(out: Path) -> dict[str, Any]:
    """The YAML of a card."""
    yaml = pytest.importorskip("yaml", reason="PyYAML, which comes with datatrove, is not installed")
    _, text, _ = (out / "README.md").read_text().split("---\n", 2)
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def table(out: Path, title: str) -> dict[str, str]:
    """First and second column of a table of a card."""
    _, _, section = (out / "README.md").read_text().partition(f"## {title}\n\n")
    rows = [line.strip("| ").split(" | ") for line in section.partition("\n\n")[0].splitlines()[2:]]
    return {row[0]: row[1] for row in rows}


def loaded(out: Path, cache: Path, **given: Any) -> Any:
    """What the library makes of a folder."""
    datasets = pytest.importorskip("datasets", reason="the library datasets is not installed")
    return datasets.load_dataset(str(out), split="train", cache_dir=str(cache), **given)


@pytest.mark.parametrize(("form", "in_a_file"), [*((form, 15) for form in FORMATS), ("jsonl", 100), ("parquet", 100)])
def test_the_library_loads_it(form: str, in_a_file: int, run: Path, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs the extra export")
    out = tmp_path / "out"
    run_export(out, run, format=form, shard_documents=in_a_file)
    assert len(files(out)) == (1 if in_a_file == 100 else 3)
    run_export(tmp_path / "plain", run, format="jsonl")
    if form == "jsonl.zst":
        pytest.importorskip("datasets", reason="the library datasets is not installed")
        pytest.importorskip("zstandard", reason="datasets needs zstandard to read .zst")
    expected = documents(tmp_path / "plain")
    for one in expected:
        if form == "parquet":
            one["date"] = datetime(2022, 8, 1, 12, tzinfo=timezone.utc)
        else:  # pyarrow takes strings of JSON for times where all are, and writes them its own way
            one["date"] = one["created"] = one["metadata"]["WARC-Date"] = "2022-08-01 12:00:00"
    rows = loaded(out, tmp_path / "cache")
    columns = set(rows.column_names)
    assert columns == {*expected[0]} - ({"source", "created", "metadata"} if form == "parquet" else set())
    assert list(rows) == [{name: one[name] for name in rows.column_names} for one in expected]
    if in_a_file == 15:
        assert sum(1 for _ in loaded(out, tmp_path / "cache", streaming=True)) == 40


@pytest.mark.parametrize("form", FORMATS)
def test_the_head_names_files_fields_and_languages(form: str, run: Path, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs the extra export")
    out = tmp_path / "out"
    run_export(out, run, format=form)
    told = head(out)
    (config,) = told["configs"]
    assert config["data_files"] == [{"split": "train", "path": f"documents/*.{form}"}]
    assert sorted(out.glob(config["data_files"][0]["path"])) == sorted((out / "documents").iterdir())
    assert told["language"] == ["en", "no", "zho"]
    assert told["size_categories"] == ["n<1K"]
    assert told["dataset_info"]["splits"] == [
        {"name": "train", "num_bytes": manifest(out)["text_bytes"], "num_examples": 40}
    ]
    if form == "jsonl":
        assert [field["name"] for field in told["dataset_info"]["features"]] == [*documents(out)[0]]


def test_what_comes_from_data_is_only_text(run: Path, tmp_path: Path) -> None:
    source = tmp_path / "a | <b>\n# c\udcff"
    source.symlink_to(run)
    run_export(tmp_path / "out", source)
    text = (tmp_path / "out/README.md").read_text()
    (row,) = [line for line in text.splitlines() if "script" in line]
    assert row == (
        r'| no\|\<script\> --- - "x"\: \[y\]\\ \`code\` https\://evil.example '
        "\N{REPLACEMENT CHARACTER}"
        r"\[2J | 1 |"
    )
    assert r"/a \| \<b\> \# c\\udcff | run |" in text
    assert len([line for line in text.splitlines() if line == "---"]) == 2
    assert manifest(tmp_path / "out")["shards"][0]["languages"] == {
        "": 20,
        "en": 5,
        "en-GB": 5,
        HOSTILE: 1,
        "no": 4,
        "zho,eng": 5,
    }


def test_more_languages_than_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_MOST_LANGUAGES", 60)
    odd = [page._replace(language=f"x-{number}") for number, page in enumerate(pages(70))]
    run_export(tmp_path / "out", write_run(tmp_path / "run", [*odd, Page("long", "a text", 0.5, "y" * 101)]))
    (shard,) = manifest(tmp_path / "out")["shards"]
    assert (len(shard["languages"]), shard["languages"]["..."]) == (61, 11)
    listed = table(tmp_path / "out", "Languages")
    assert (len(listed), listed["..."], listed["others"]) == (51, "11", "11")


def test_sources_models_and_opt_outs(run: Path, demo_web: Web, tmp_path: Path) -> None:
    bare = write_run(tmp_path / "bare", [Page("bare", "a text of its own", None)])
    (bare / "crawl.jsonl").unlink()
    run_export(tmp_path / "out", run, bare / "warc", settings={"SCORER_MODEL": str(demo_web.model)})
    digest = FastTextScorer(demo_web.model, "__label__hq").digest
    text = (tmp_path / "out/README.md").read_text()
    assert f"were scored by the model with the digest sha256\\:{digest}." in text
    assert f"| {run} | run | " in text
    assert "sha256\\:" + "a" * 64 in text
    assert manifest(tmp_path / "out")["opt_out"] == [{"robots": "simulation: no requests sent"}] * 2
    assert f"| {run} | simulation\\: no requests sent | - |" in text


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_purge_keeps_it_true(form: str, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs the extra export")
    hosts = [("one.example", "en"), ("two.example", "de"), ("www.two.example", "en")]
    ours = [
        page._replace(host=host, language=language)
        for page, (host, language) in zip(pages(30), hosts * 10, strict=True)
    ]
    run, out = write_run(tmp_path / "run", ours), tmp_path / "out"
    run_export(out, run, format=form, shard_documents=20)
    assert table(out, "Languages") == {"en": "20", "de": "10"}
    before = manifest(out)
    done("purge", "two.example", run, "--export", out)
    assert (before["documents"], manifest(out)["documents"]) == (30, 10)
    assert table(out, "Languages") == {"en": "10"}
    assert "| two.example | 20 |" in (out / "README.md").read_text()
    assert (out / "README.md").read_text() == card(manifest(out), out)
    (split,) = head(out)["dataset_info"]["splits"]
    assert split == {"name": "train", "num_bytes": manifest(out)["text_bytes"], "num_examples": 10}
    assert head(out)["language"] == ["en"]
    left = loaded(out, tmp_path / "cache")
    assert len(left) == 10
    assert {str(date)[:19] for date in left["date"]} == {"2022-08-01 12:00:00"}


def test_an_export_that_goes_on_where_it_was_stopped(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_export(tmp_path / "whole", run, shard_documents=15)
    write, out = export_module.write_shard, tmp_path / "out"

    def stop_at_last(job: shards.ShardJob) -> dict[int, str]:
        if job.path.name.startswith("00002"):
            raise KeyboardInterrupt
        return write(job)

    monkeypatch.setattr(export_module, "write_shard", stop_at_last)
    with pytest.raises(KeyboardInterrupt):
        run_export(out, run, shard_documents=15)
    assert not (out / "README.md").exists()
    noted = out / "work/shards/00000.jsonl.zst.json"
    facts = json.loads(noted.read_text())
    noted.write_text(json.dumps({**facts, "facts": facts["facts"][:6]}))  # by a version that counted no languages
    monkeypatch.setattr(export_module, "write_shard", write)
    run_export(out, run, shard_documents=15)
    assert (out / "README.md").read_bytes() == (tmp_path / "whole/README.md").read_bytes()


def test_a_damaged_manifest(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^manifest\.json is damaged; remove the export and make it again$"):
        card({"shards": [{"name": 7}]}, Path("manifest.json"))


@pytest.mark.parametrize("name", ["tokens", "purged"])
def test_a_damaged_manifest_is_not_purged(name: str, run: Path, tmp_path: Path) -> None:
    run_export(tmp_path / "out", run)
    (tmp_path / "out/manifest.json").write_text(json.dumps(manifest(tmp_path / "out") | {name: 5}))
    with pytest.raises(InputError, match=r"manifest\.json is damaged[;:] "):
        list(purge_export(tmp_path / "out", Domain("site.example.org")))


def test_an_export_of_nothing(run: Path, tmp_path: Path) -> None:
    run_export(tmp_path / "out", run, min_words=10_000)
    assert "0 documents with 0 words" in (tmp_path / "out/README.md").read_text()
    assert table(tmp_path / "out", "Left out") == {"too\\_short": "40"}


@pytest.mark.parametrize(
    ("documents", "size"), [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (10**6, "1M<n<10M"), (10**12, "n>1T")]
)
def test_size_categories(documents: int, size: str) -> None:
    assert _size(documents) == size

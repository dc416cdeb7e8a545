"""The readers of pretraining pipelines take exports as they are: each is run here where it is installed."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import duckdb
import pytest
from export_helpers import documents, files, pages, run_export, write_run

from crawl4llm.tools.export.formats import FORMATS, date_of, moment

from export_helpers import zstd  # isort: skip


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of 1,200 pages in each format that can be written here, in two files, and as plain lines."""
    folder = tmp_path_factory.mktemp("readers")
    crawled = [page._replace(language="en", text=f'{page.text} \u00e9\u2028"\\\x0b\x00') for page in pages(1200)]
    run = write_run(folder / "run", crawled)
    made = {}
    for name in FORMATS:
        if name == "parquet":
            pytest.importorskip("pyarrow", reason="Parquet needs the extra export")
        made[name] = folder / name
        run_export(made[name], run, format=name, shard_documents=1100)
    return made


def as_in_parquet(name: str, value: Any) -> Any:
    """A value of JSON as Parquet has it: a date is a time."""
    return datetime.fromisoformat(value.replace("Z", "+00:00")) if name == "date" else value


@pytest.mark.slow
def test_all_formats_hold_the_same(exports: dict[str, Path]) -> None:
    plain = documents(exports["jsonl"])
    assert plain == documents(exports["jsonl.gz"]) == documents(exports["jsonl.zst"])
    assert len(plain) == 1200
    from pyarrow import parquet

    rows = [
        row
        for path in sorted((exports["parquet"] / "documents").iterdir())
        for row in parquet.read_table(path).to_pylist()
    ]
    columns = rows[0].keys()
    assert rows == [{name: as_in_parquet(name, document[name]) for name in columns} for document in plain]
    assert columns == {*plain[0]} - {"source", "created", "metadata"}


def test_a_zstandard_file_is_one_frame(exports: dict[str, Path]) -> None:
    """Readers made with python-zstandard's ``stream_reader`` stop after the first."""
    for data in files(exports["jsonl.zst"]).values():
        frame = zstd.ZstdDecompressor()
        frame.decompress(data)
        assert frame.eof
        assert frame.unused_data == b""


@pytest.mark.parametrize("name", FORMATS)
def test_datatrove(exports: dict[str, Path], name: str) -> None:
    readers = pytest.importorskip("datatrove.pipeline.readers", reason="datatrove is not installed")
    kind = readers.ParquetReader if name == "parquet" else readers.JsonlReader
    read = list(kind(str(exports[name] / "documents"), doc_progress=False).run())
    plain = documents(exports["jsonl"])
    assert [(document.id, document.text) for document in read] == [(one["id"], one["text"]) for one in plain]
    for field in ("url", "date", "language", "influence", "warc_file", "warc_offset", "warc_length", "digest"):
        expected = [as_in_parquet(field, one[field]) if name == "parquet" else one[field] for one in plain]
        assert [document.metadata[field] for document in read] == expected


def test_duckdb_compares_dates(exports: dict[str, Path]) -> None:
    files = f"{exports['parquet']}/documents/*.parquet"
    query = "select count(*), min(date)::timestamptz = ? from read_parquet(?) where date >= date '2022-01-01'"
    (found,) = duckdb.execute(query, [datetime(2022, 8, 1, 12, tzinfo=timezone.utc), files]).fetchall()
    assert found == (1200, True)


@pytest.mark.parametrize(
    ("date", "time"),
    [
        ("2022-08-01T12:00:00Z", (12, 0, 0, 0)),
        ("2022-08-01T12:00:00.5Z", (12, 0, 0, 500_000)),
        ("2022-08-01T12:00:00.123456789Z", (12, 0, 0, 123_456)),
    ],
)
def test_dates_of_parquet(date: str, time: tuple[int, int, int, int]) -> None:
    """WARC-Dates have up to nine digits of a second (ISO 28500:2017, 5.4)."""
    found = moment(date)
    assert found == datetime(2022, 8, 1, *time, tzinfo=timezone.utc)
    assert moment(date_of(found)) == found


@pytest.mark.parametrize("date", [None, "", "2022-08", "2022-02-31T12:00:00Z", "0000-01-01T00:00:00Z", "yesterday"])
def test_what_is_no_date_is_null(date: str | None) -> None:
    assert moment(date) is None


@pytest.mark.parametrize("name", ["jsonl.gz", "jsonl.zst"])
def test_dolma(exports: dict[str, Path], name: str, tmp_path: Path) -> None:
    """A tagger that sees what dolma's reader gives it."""
    runtime = pytest.importorskip("dolma.core.runtime", reason="dolma is not installed; see docs/export.md")
    from dolma.core.data_types import DocResult, Span
    from dolma.core.registry import TaggerRegistry
    from dolma.core.taggers import BaseTaggerWithMetadata

    seen: list[Any] = []

    class Seen(BaseTaggerWithMetadata):  # type: ignore[misc]
        def predict(self, doc: Any) -> Any:
            seen.append(doc)
            return DocResult(doc=doc, spans=[Span(start=0, end=len(doc.text), type="all", score=1.0)])

    tagger = f"crawl4llm_{name.rpartition('.')[2]}_v1"
    TaggerRegistry.add(tagger)(Seen)
    runtime.create_and_run_tagger(
        documents=[str(exports[name] / "documents" / "*")], taggers=[tagger], destination=[str(tmp_path)], debug=True
    )
    expected = {
        one["id"]: (one["text"], "crawl4llm", one["metadata"]["influence"]) for one in documents(exports["jsonl"])
    }
    assert {doc.id: (doc.text, doc.source, doc.metadata["influence"]) for doc in seen} == expected


@pytest.mark.parametrize("name", ["jsonl", "jsonl.gz", "jsonl.zst"])
def test_dclm(exports: dict[str, Path], name: str) -> None:
    """The reader of a checkout of mlfoundations/dclm on PYTHONPATH, which is no package."""
    reader = pytest.importorskip("baselines.core.file_utils", reason="no checkout of DCLM; see docs/export.md")
    paths = sorted((exports[name] / "documents").iterdir())
    read = [one for path in paths for one in reader.read_jsonl(str(path))]
    assert read == documents(exports["jsonl"])
    assert all(json.dumps(one) and one["url"] == one["metadata"]["WARC-Target-URI"] for one in read)

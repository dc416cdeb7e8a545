"""The readers of pretraining pipelines take exports as they are: each is run here where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from export_helpers import documents, files, pages, run_export, write_run

from crawl4llm.tools.export.formats import FORMATS

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
    assert rows == [{name: document[name] for name in columns} for document in plain]
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
        assert [document.metadata[field] for document in read] == [one[field] for one in plain]


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

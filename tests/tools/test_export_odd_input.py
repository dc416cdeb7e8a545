"""``scrapy export`` of what is damaged or odd, and what it refuses before it begins."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from crawl_helpers import error_of, scrapy
from export_helpers import Page, documents, manifest, pages, run_export, write_run
from warc_helpers import page, record, url_of, write

from crawl4llm import scoring
from crawl4llm.base.errors import InputError
from crawl4llm.tools.export.folder import ExportFolder


def test_scores_of_two_models_are_not_compared_where_all_is_known(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", pages(3))
    second = write_run(tmp_path / "second", [Page("new", "a new text", 0.9)])
    (second / "settings.json").write_text(json.dumps({"model_digest": "sha256:" + "b" * 64}))
    with pytest.raises(InputError, match="of different models and cannot be compared"):
        run_export(tmp_path / "out", first, second, top=2)
    (second / "settings.json").write_text(json.dumps({"model_digest": ["sha256"]}))
    with pytest.raises(InputError, match=r"settings\.json is damaged: its model_digest is \['sha256'\]"):
        run_export(tmp_path / "out", first, second, top=2)


@pytest.mark.parametrize(
    ("name", "content", "how"),
    [
        ("prepared.0.jsonl", b"\xff" * 16, "prepared.0.jsonl"),
        ("listed.json", b'{"left_out": {"x": -1}, "scores": false}', "its left_out is"),
        ("listed.json", b'{"left_out": {}}', "it lacks left_out_languages"),
        ("request.json", b'{"settings": {}}', "it lacks state"),
    ],
)
def test_an_unfinished_export_that_was_changed_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes, how: str
) -> None:
    source = unfinished(tmp_path, monkeypatch)
    (tmp_path / "out/work" / name).write_bytes(content)
    with pytest.raises(InputError, match=how) as raised:
        run_export(tmp_path / "out", source)
    assert str(tmp_path / "out") in str(raised.value)


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-9], lambda data: data[::-1]])
def test_damaged_texts_of_an_unfinished_export_are_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[bytes], bytes]
) -> None:
    source = unfinished(tmp_path, monkeypatch)
    (file,) = (tmp_path / "out/documents").iterdir()
    file.unlink()
    texts = tmp_path / "out/work/texts.0"
    texts.write_bytes(damage(texts.read_bytes()))
    with pytest.raises(InputError, match=f"{texts} is damaged; remove the output directory and export again"):
        run_export(tmp_path / "out", source)


def unfinished(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source of an export to ``folder``/out that was stopped just before its end."""

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    source = write(folder / "a.warc.gz", page(0), page(1))
    with monkeypatch.context() as patch:
        patch.setattr(ExportFolder, "finish", stopped)
        with pytest.raises(KeyboardInterrupt):
            run_export(folder / "out", source)
    return source


@pytest.mark.parametrize(
    ("wanted", "fault"), [({"top": 1}, "no page has an influence"), ({"oracle": True}, "OUTPUT_DIR")]
)
def test_what_cannot_be_selected_is_refused_before_texts_are_extracted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: dict, fault: str
) -> None:
    extracted: list[int] = []
    extract = scoring.extract_text
    monkeypatch.setattr(scoring, "extract_text", lambda *given: extracted.append(1) or extract(*given))
    source = write(tmp_path / "a.warc.gz", page(0), page(1))
    with pytest.raises(InputError, match=fault):
        run_export(tmp_path / "out", source, **wanted)
    assert not extracted


def _in_index(name: str, **fields: object) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        path = run / "warc" / name
        lines = path.read_text().splitlines()
        key, stamp, entry = lines[1].split(" ", 2)
        lines[1] = f"{key} {stamp} {json.dumps({**json.loads(entry), **fields})}"
        path.write_text("\n".join(lines) + "\n")

    return change


def _with_stamp(run: Path) -> None:
    path = run / "warc" / "index.cdxj"
    path.write_bytes(path.read_bytes().replace(b" 2022", b" \xff022", 1))


def _in_log(run: Path) -> None:
    path = run / "crawl.jsonl"
    path.write_text(path.read_text().replace('"influence": 0.25', '"influence": "0.25"'))


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(_in_index("text.cdxj", offset="9" * 23), id="offset-of-text"),
        pytest.param(_in_index("text.cdxj", length="9" * 12), id="length-of-text"),
        pytest.param(_in_index("text.cdxj", digest="sha256:" + "A" * 64), id="digest-of-text"),
        pytest.param(_in_index("text.cdxj", digest="sha1:ä"), id="digest-not-ascii"),
        pytest.param(_in_index("index.cdxj", offset="9" * 23), id="offset"),
        pytest.param(_in_index("index.cdxj", id=5), id="id"),
        pytest.param(_in_index("index.cdxj", url=5), id="url"),
        pytest.param(_in_index("index.cdxj", status=200), id="status"),
        pytest.param(_in_index("text.cdxj", id=["key"]), id="id-of-text"),
        pytest.param(_with_stamp, id="stamp"),
        pytest.param(_in_log, id="influence"),
    ],
)
def test_a_damaged_line_is_one_line_or_counted(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    run = write_run(tmp_path / "run", pages(4))
    damage(run)
    try:
        run_export(tmp_path / "out", run)
    except InputError:
        return
    assert len(documents(tmp_path / "out")) >= 3


def test_oracle_takes_the_folder_of_an_archive_for_its_run(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", pages(3))
    for source in (run, run / "warc"):
        with pytest.raises(InputError, match=f"^{run}: its settings.json names no corpus"):
            run_export(tmp_path / f"out-{source.name}", source, oracle=True)


@pytest.mark.parametrize("influence", ["nan", "inf", "-inf", "much"])
def test_an_influence_that_is_no_number_is_none(tmp_path: Path, influence: str) -> None:
    def about(number: int, value: str) -> bytes:
        block = f"id: {number}\r\ninfluence: {value}\r\n".encode()
        return record("metadata", url_of(number), block, ["Content-Type: application/warc-fields"])

    source = write(tmp_path / "a.warc.gz", page(0), about(0, influence), page(1), about(1, "0.5"))
    run_export(tmp_path / "out", source)
    assert [document["influence"] for document in documents(tmp_path / "out")] == [None, 0.5]
    run_export(tmp_path / "best", source, top=1)
    assert [document["url"] for document in documents(tmp_path / "best")] == [url_of(1)]


@pytest.mark.parametrize("wanted", [{}, {"keep_duplicates": True}], ids=["selected", "all"])
def test_text_is_counted_and_weighed_as_it_is_written(tmp_path: Path, wanted: dict) -> None:
    text = b"caf\xe9 au lait"
    run_export(tmp_path / "out", write(tmp_path / "a.warc.wet.gz", _wet(0, text)), **wanted)
    (document,) = documents(tmp_path / "out")
    assert manifest(tmp_path / "out")["text_bytes"] == len(document["text"].encode())


def test_a_text_of_nothing_but_unicode_blanks_is_no_text(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [*pages(2), Page("blank", " \u2003\u2028", 0.9)], text_only=True)
    run_export(tmp_path / "out", run)
    assert manifest(tmp_path / "out")["left_out"] == {"no_text": 1}


def _wet(number: int, text: bytes) -> bytes:
    return record("conversion", url_of(number), text, ["Content-Type: text/plain"])


# -- what no document can be ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("languages", "wanted", "fault"),
    [
        ([None, None], ("en",), "--language: no page has a known language; export w"),
        (["eng", "deu"], ("en", "de"), "--language en de: no page is in it; languages of the pages: deu, eng$"),
        (["e\x1bn"], ("en",), "--language en: no page is in it; languages of the pages: e\N{REPLACEMENT CHARACTER}n$"),
        ([f"x-{n:02d}" for n in range(12)], ("en",), "pages: x-00, .*, x-09 \\.\\.\\.$"),
    ],
)
def test_a_language_that_no_page_has(
    languages: list[str | None], wanted: tuple[str, ...], fault: str, tmp_path: Path
) -> None:
    crawled = [page._replace(language=name) for page, name in zip(pages(len(languages)), languages, strict=True)]
    with pytest.raises(InputError, match=fault):
        run_export(tmp_path / "out", write_run(tmp_path / "run", crawled), languages=wanted)
    assert not (tmp_path / "out/manifest.json").exists()


def test_a_language_of_pages_that_are_left_out_for_another_reason(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [page._replace(language="en") for page in pages(3)])
    assert run_export(tmp_path / "out", run, languages=("en",), min_words=1000)[0].startswith("Wrote 0 documents")


def test_a_language_of_pages_that_are_left_out_by_their_score(tmp_path: Path) -> None:
    german, english = pages(2)
    run = write_run(tmp_path / "run", [german._replace(language="de"), english._replace(language="en")])
    told = run_export(tmp_path / "out", run, languages=("de",), min_influence=0.5)
    assert told[0].startswith("Wrote 0 documents")
    assert manifest(tmp_path / "out")["left_out"] == {"below_min_influence": 1, "language": 1}


def test_limits_that_no_text_can_keep(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", pages(3))
    result = scrapy("export", str(run), "--out", str(tmp_path / "out"), "--min-words", "5", "--max-words", "2")
    assert error_of(result) == "--min-words 5 is more than --max-words 2; no text fits both"
    assert not (tmp_path / "out").exists()
    run_export(tmp_path / "equal", run, min_words=20, max_words=20)
    assert manifest(tmp_path / "equal")["documents"] == 3


@pytest.mark.parametrize("name", [b"\xff\n.warc.gz", b"x" * 247 + b".warc.gz"], ids=["no UTF-8", "long"])
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_names_of_archive_files(form: str, name: bytes, tmp_path: Path) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs the extra export")
    source = write(tmp_path / os.fsdecode(name), page(0), page(1))
    run_export(tmp_path / "out", source, format=form)
    assert manifest(tmp_path / "out")["documents"] == 2
    if form == "jsonl":
        assert {one["warc_file"] for one in documents(tmp_path / "out")} == {name.decode("utf-8", "replace")}


def test_a_folder_whose_name_is_no_utf8(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="DuckDB takes no path that is not UTF-8; give another"):
        run_export(tmp_path / os.fsdecode(b"\xff"), write(tmp_path / "a.warc.gz", page(0)))
    assert len(list(tmp_path.iterdir())) == 1

"""An export is the same however it was made: by how many processes, in how many pieces, over what damage."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, begin, error_of, scrapy
from export_helpers import Page, documents, entries, files, flip, ids, manifest, pages, run_export, write_run
from model_helpers import patched

from crawl4llm import scoring
from crawl4llm.base.errors import InputError
from crawl4llm.tools.export import documents as export_documents, export as export_module, shards
from crawl4llm.tools.export.folder import exclusive


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    crawled = [page._replace(language="en") for page in pages(200, words=60)]
    return write_run(tmp_path_factory.mktemp("whole") / "run", crawled)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose pages have no archived text."""
    pytest.importorskip("resiliparse", reason="the quick extractor is an extra")
    return write_run(tmp_path_factory.mktemp("whole") / "bare", pages(40), texts=False)


def content(out: Path) -> tuple[dict[str, bytes], bytes]:
    return files(out), (out / "manifest.json").read_bytes()


def test_equal_bytes_whatever_the_processes_and_hash_seed(bare: Path, tmp_path: Path) -> None:
    wanted = {"shard_documents": 9, "min_influence": 0.02, "order": "influence"}
    run_export(tmp_path / "one", bare, **wanted)
    assert len(files(tmp_path / "one")) == 5
    options = [part for name, value in wanted.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    settings = ["-s", "SCORING_WORKERS=2", "-s", "TEXT_EXTRACTOR=resiliparse"]
    out = tmp_path / "two"
    result = scrapy("export", str(bare), "--out", str(out), *options, *settings, env={"PYTHONHASHSEED": "7"})
    assert result.returncode == 0, result.stderr
    assert content(out) == content(tmp_path / "one")


def test_killed_while_it_writes_it_goes_on(run: Path, tmp_path: Path) -> None:
    run_export(tmp_path / "whole", run, shard_documents=1)
    out = tmp_path / "killed"
    args = ["export", str(run), "--out", str(out), "--shard-documents", "1", "-s", "SCORING_WORKERS=0"]
    process = begin(args, silent=["out", "err"])
    noted = out / "work" / "shards"
    while process.poll() is None and len(list(noted.glob("*.json"))) < 3:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it had finished before it was killed"
    kept = {path: path.stat().st_mtime_ns for path in (out / "documents").iterdir() if path.suffix != ".open"}
    with pytest.raises(InputError, match="holds another export: settings shard_documents was 1, is 2 now"):
        run_export(out, run, shard_documents=2)
    run_export(out, run, shard_documents=1, settings={"TEXT_EXTRACTOR": "trafilatura"})
    assert files(out) == files(tmp_path / "whole")
    unchanged = [path for path, changed in kept.items() if path.stat().st_mtime_ns == changed]
    assert len(unchanged) >= 3


def test_stopped_while_it_prepares_it_goes_on(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_documents, "BLOCK", 8)
    run_export(tmp_path / "whole", bare)
    extracted: list[bytes] = []
    extract = scoring.extract_text

    def fail_after(html: bytes, extractor: Any, *, most: int) -> str:
        extracted.append(html)
        if len(extracted) > most:
            raise KeyboardInterrupt
        return extract(html, extractor)

    out = tmp_path / "stopped"
    for most in (20, 100):
        monkeypatch.setattr(scoring, "extract_text", partial(fail_after, most=most))
        if most == 20:
            with pytest.raises(KeyboardInterrupt):
                run_export(out, bare)
            with (out / "work" / "texts.0").open("ab") as spool:
                spool.write(b"a text whose row was not written")
    run_export(out, bare)
    assert len(extracted) == 21 + 40 - 16  # two blocks of eight were kept
    assert content(out) == content(tmp_path / "whole")


def test_one_process_at_a_time_writes_an_export(bare: Path, tmp_path: Path) -> None:
    work = tmp_path / "out" / "work"
    work.mkdir(parents=True)
    with exclusive(work, "lock"), pytest.raises(InputError, match=f"{work} is being changed by another process"):
        run_export(tmp_path / "out", bare)
    assert run_export(tmp_path / "out", bare)


def test_a_finished_export_says_so_and_others_are_refused(run: Path, bare: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_export(out, run, top=3)
    before = content(out)
    assert run_export(out, run, top=3) == [f"{out} is finished: it holds this export already"]
    for source, wanted in ((run, {"top": 4}), (bare, {"top": 3})):
        with pytest.raises(InputError, match="holds another export: "):
            run_export(out, source, **wanted)
    assert content(out) == before
    (shard,) = (out / "documents").iterdir()
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(InputError, match=r"00000\.jsonl\.zst is missing or was changed"):
        run_export(out, run, top=3)
    (tmp_path / "mine" / "documents").mkdir(parents=True)
    (tmp_path / "mine" / "documents" / "novel.txt").write_text("once")
    with pytest.raises(InputError, match="is not empty and holds no export"):
        run_export(tmp_path / "mine", run)
    assert (tmp_path / "mine" / "documents" / "novel.txt").read_text() == "once"


def _damaged(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Runs of four pages, of which the third cannot be had, though the text of the fourth is the same."""
    crawled = [*pages(3), Page("same", pages(3)[2].text, 0.1)]
    run = write_run(tmp_path / "flipped", crawled)
    text = entries(run / "warc" / "text.cdxj")[2]
    flip(run / "warc" / text["filename"], int(text["offset"]) + int(text["length"]) // 2)
    yield run, "corrupt_record"
    run = write_run(tmp_path / "older index", crawled)
    index = run / "warc" / "text.cdxj"
    lines = index.read_text().splitlines(keepends=True)
    first, third = entries(index)[0], entries(index)[2]
    for name in ("offset", "length"):
        lines[2] = lines[2].replace(f'"{name}": "{third[name]}"', f'"{name}": "{first[name]}"')
    index.write_text("".join(lines))
    yield run, "corrupt_record"


def test_a_damaged_record_is_counted_and_makes_room(tmp_path: Path) -> None:
    for run, reason in _damaged(tmp_path):
        run_export(tmp_path / f"of {run.name}", run, shard_documents=2)
        assert ids(tmp_path / f"of {run.name}") == ["key-000", "key-001", "same"]
        assert manifest(tmp_path / f"of {run.name}")["left_out"] == {reason: 1}


def test_pages_that_the_index_does_not_name_are_counted(tmp_path: Path) -> None:
    """As after a crawl that was killed, or while it runs."""
    run = write_run(tmp_path / "run", pages(5))
    for name in ("index.cdxj", "text.cdxj"):
        index = run / "warc" / name
        index.write_bytes(b"".join(index.read_bytes().splitlines(keepends=True)[:3]) + b"org,example)/ 2022")
    warc = next((run / "warc").glob("pages-0*"))
    warc.rename(f"{warc}.open")
    lines = run_export(tmp_path / "out", run)
    assert ids(tmp_path / "out") == ["key-000", "key-001", "key-002"]
    assert documents(tmp_path / "out")[0]["warc_file"] == warc.name
    assert manifest(tmp_path / "out")["left_out"] == {"not_indexed": 2}
    assert lines[-1].endswith(f"scrapy archive repair {run}")


def test_a_wrong_index_is_one_line(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", pages(2))
    index = run / "warc" / "index.cdxj"
    for wrong, fault in (
        (index.read_text().replace("pages-00000", "pages-00007"), "line 1: names pages-00007.warc.gz, which is not in"),
        (index.read_text() + "nonsense\n", "line 3: is not an entry of an index"),
    ):
        index.write_text(wrong)
        with pytest.raises(InputError, match=fault):
            run_export(tmp_path / "out", run)
        index.write_text(wrong.replace("nonsense\n", "").replace("pages-00007", "pages-00000"))


def test_a_tilde_is_the_home_directory(run: Path, tmp_path: Path) -> None:
    result = scrapy("export", str(run), "--out", "~/out", "--top", "1", cwd=tmp_path, env={"HOME": str(tmp_path)})
    assert result.returncode == 0, result.stderr
    assert ids(tmp_path / "out")


def test_files_of_a_run_that_are_missing_or_damaged_are_named(run: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(run, broken)
    (broken / "settings.json").write_text('{"model_digest": "sha2')
    with pytest.raises(InputError, match=r"settings\.json is damaged; restore the crawl's own"):
        run_export(tmp_path / "out", broken)
    (broken / "warc" / "index.cdxj").unlink()
    with pytest.raises(InputError, match=r"warc/index\.cdxj is missing; make it again: .*scrapy archive repair /"):
        run_export(tmp_path / "out", broken)


def test_a_source_that_changes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run", pages(3))
    warc = next((run / "warc").glob("pages-text-*"))

    def write_and_change(job: shards.ShardJob) -> dict[int, str]:
        written = shards.write_shard(job)
        with warc.open("ab") as file:
            file.write(b"\0")
        return written

    monkeypatch.setattr(export_module, "write_shard", write_and_change)
    with pytest.raises(InputError, match=f"{warc} changed while it was exported"):
        run_export(tmp_path / "out", run)
    assert not (tmp_path / "out" / "manifest.json").exists()
    with pytest.raises(InputError, match="holds another export: sources"):
        run_export(tmp_path / "out", run)


def test_a_full_disk_is_one_line_and_nothing_is_lost(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    args = ["export", str(run), "--out", str(out), "--format", "jsonl", "--shard-documents", "199"]
    result = scrapy(*args, "-s", "SCORING_WORKERS=0", limits={"RLIMIT_FSIZE": 90_000})
    assert error_of(result) == f"{out / 'documents' / '00000.jsonl'} cannot be written: File too large"
    assert not any((out / "documents").iterdir())
    run_export(out, run, format="jsonl", shard_documents=199, settings={"TEXT_EXTRACTOR": "trafilatura"})
    assert len(ids(out)) == json.loads((out / "manifest.json").read_text())["documents"] == 200


def test_scores_are_of_one_model(demo_web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that another one replaces, while an export is unfinished and when it is finished."""
    model, out = tmp_path / "model.bin", tmp_path / "out"
    run = write_run(tmp_path / "run", [page._replace(influence=None) for page in pages(3)])
    (run / "crawl.jsonl").unlink()
    export = partial(run_export, out, run / "warc", settings={"SCORER_MODEL": str(model)})
    shutil.copy(demo_web.model, model)
    with monkeypatch.context() as patch:
        patch.setattr(export_module, "write_shard", lambda _: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            export()
    for _ in range(2):
        patched(demo_web.model, model, slice(0, 1), 2)
        with pytest.raises(InputError, match=f"{out} holds another export: its pages were scored by the model sha256:"):
            export()
        shutil.copy(demo_web.model, model)
        export()
    assert manifest(out)["model_digest"] == f"sha256:{hashlib.sha256(model.read_bytes()).hexdigest()}"

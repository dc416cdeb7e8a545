"""The URL index: forgiving look-ups, builds that are killed, parts that go stale, indexes that do not fit."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from clueweb22_helpers import key_of, member, paths, text_record, url_of, write_file, write_tree

from crawl4llm.base import spread
from crawl4llm.base.errors import InputError
from crawl4llm.base.whole_files import locked
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.clueweb22.url_index import build_url_index, filed_form

PROJECT = Path(__file__).resolve().parents[2]


def corpus_of(tmp_path: Path, files: int = 3, records: int = 4) -> ClueWeb22Corpus:
    """A tree of texts; its index belongs into ``tmp_path / "index"``."""
    for number in range(files):
        file_id = f"en0000-{number:02d}"
        keys = [key_of(file_id, record) for record in range(records)]
        write_file(tmp_path / "tree", "txt", file_id, [member(text_record(key)) for key in keys])
    return ClueWeb22Corpus(tmp_path / "tree", url_index=tmp_path / "index")


def index_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("https://example.org/a", "example.org/a"),
        ("http://example.org/a", "example.org/a"),
        ("HTTP://Example.ORG/a", "example.org/a"),
        ("example.org/a", "example.org/a"),
        ("https://example.org/a/", "example.org/a"),
        ("https://example.org/a/#part", "example.org/a"),
        ("https://example.org:443/a", "example.org/a"),
        ("http://example.org:80/a", "example.org/a"),
        ("  https://example.org/a\n", "example.org/a"),
        ("https://example.org", "example.org"),
        ("https://example.org/", "example.org"),
        ("https://example.org#top", "example.org"),
        ("https://example.org?", "example.org"),
        ("https://example.org:8080/a", "example.org:8080/a"),
        ("https://example.org/A", "example.org/A"),
        ("https://example.org/a?b=C/", "example.org/a?b=C/"),
        ("https://example.org/a/?b", "example.org/a?b"),
        ("https://example.org/to?http://else.example/#x", "example.org/to?http://else.example/"),
        ("https://example.org/a//", "example.org/a/"),
        ("https://www.example.org/a", "www.example.org/a"),
        ("https://例え.example/ページ", "xn--r8jz45g.example/%E3%83%9A%E3%83%BC%E3%82%B8"),
    ],
)
def test_lookup_form(url: str, form: str) -> None:
    assert filed_form(url) == form


def test_every_url_is_found_in_forgiving_spellings(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path)
    build_url_index(corpus, tmp_path / "index")
    for key in list(corpus.keys()):
        url = url_of(key)
        assert corpus.resolve(url) == key
        assert corpus.resolve(url.replace("https://", "HTTP://").replace("example", "EXAMPLE", 1) + "/#top") == key
    assert corpus.resolve(url_of(key) + "x") is None
    assert corpus.resolve("") is None


def test_of_several_documents_at_one_url_the_smallest_id_is_found(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, files=4)
    same = "https://same.example/page"
    for file_id in ("en0000-03", "en0000-01"):
        keys = [key_of(file_id, record) for record in range(3)]
        urls = [url_of(keys[0]), same, f"{same}/"]
        write_file(
            tmp_path / "tree", "txt", file_id, [member(text_record(*one)) for one in zip(keys, urls, strict=True)]
        )
    summary = build_url_index(corpus, tmp_path / "index")
    assert corpus.resolve(same) == key_of("en0000-01", 1)
    assert summary[:5] == (14, 3, 4, 0, {"unreadable": 0})


def test_unreadable_documents_are_counted(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, files=1)
    records = [b"damaged", member(b"\n"), member(text_record(key_of("en0000-00", 2)))]
    write_file(tmp_path / "tree", "txt", "en0000-00", records)
    summary = build_url_index(corpus, tmp_path / "index")
    assert (summary.documents, summary.counts) == (1, {"unreadable": 2})
    assert corpus.resolve(url_of(key_of("en0000-00", 2))) == key_of("en0000-00", 2)


def test_the_index_is_the_same_whatever_the_number_of_jobs(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path)
    for jobs in (1, 3):
        build_url_index(corpus, tmp_path / str(jobs), jobs)
    assert index_files(tmp_path / "1") == index_files(tmp_path / "3")


def test_many_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "SORTED_AT_ONCE", 8)
    corpus = corpus_of(tmp_path, files=5, records=40)
    build_url_index(corpus, tmp_path / "index")
    (columns,) = (tmp_path / "index").glob("columns-*")
    assert columns.stat().st_size == 4096 + 200 * 16 + 8 * 3
    assert [corpus.resolve(url_of(key)) for key in list(corpus.keys())] == list(corpus.keys())
    assert corpus.resolve("https://en.example/none") is None


def test_an_index_that_is_up_to_date_is_left_alone(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path)
    build_url_index(corpus, tmp_path / "index")
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "index").rglob("*") if path.name != "lock"}
    assert build_url_index(corpus, tmp_path / "index")[:4] == (12, 0, 0, 3)
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_only_changed_files_are_read_again(tmp_path: Path) -> None:
    build_url_index(corpus_of(tmp_path), tmp_path / "index")
    new = key_of("en0000-01", 0)
    write_file(tmp_path / "tree", "txt", "en0000-01", [member(text_record(new, "https://new.example/"))])
    write_file(tmp_path / "tree", "txt", "en0000-09", [member(text_record(key_of("en0000-09", 0)))])
    for path in paths(tmp_path / "tree", "txt", "en0000-02"):
        path.unlink()

    corpus = ClueWeb22Corpus(tmp_path / "tree", url_index=tmp_path / "index")
    with pytest.raises(InputError, match=r"index.*another state of the corpus.*scrapy corpus index"):
        corpus.resolve("https://new.example/")
    assert build_url_index(corpus, tmp_path / "index")[:4] == (6, 0, 2, 1)
    assert corpus.resolve("https://new.example/") == new
    assert corpus.resolve(url_of(key_of("en0000-00", 3))) == key_of("en0000-00", 3)
    assert corpus.resolve(url_of(key_of("en0000-02", 0))) is None

    fresh = tmp_path / "fresh"
    build_url_index(corpus, fresh)
    assert index_files(tmp_path / "index") == index_files(fresh), "nothing of the earlier state is left"


def test_a_folder_of_links_that_was_added_makes_the_files_stale(tmp_path: Path) -> None:
    build_url_index(corpus_of(tmp_path), tmp_path / "index")
    write_tree(tmp_path / "other", ["en0000-00"], 4)
    shutil.copytree(tmp_path / "other/outlink", tmp_path / "tree/outlink")
    corpus = ClueWeb22Corpus(tmp_path / "tree", url_index=tmp_path / "index")
    assert build_url_index(corpus, tmp_path / "index")[:4] == (12, 0, 1, 2)


def test_parts_and_columns_that_were_cut_short_are_made_again(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path)
    build_url_index(corpus, tmp_path / "index")
    before = index_files(tmp_path / "index")
    part, _, _ = sorted((tmp_path / "index/parts").iterdir())
    os.truncate(part, part.stat().st_size - 1)
    assert build_url_index(corpus, tmp_path / "index").files_read == 1
    assert index_files(tmp_path / "index") == before
    (columns,) = (tmp_path / "index").glob("columns-*")
    for size in (16, 4096, columns.stat().st_size - 1):
        os.truncate(columns, size)
        assert build_url_index(corpus, tmp_path / "index").files_read == 0
        assert index_files(tmp_path / "index") == before


def test_a_hit_whose_page_has_another_url_is_no_hit(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, files=1, records=1)
    key = key_of("en0000-00", 0)
    write_file(tmp_path / "tree", "txt", "en0000-00", [gzip_stored(text_record(key, "https://old.example/"))])
    build_url_index(corpus, tmp_path / "index")
    assert corpus.resolve("https://old.example/") == key
    write_file(tmp_path / "tree", "txt", "en0000-00", [gzip_stored(text_record(key, "https://new.example/"))])
    corpus.close()
    assert corpus.resolve("https://old.example/") is None, "sizes are the same, so only the page itself can tell"


def gzip_stored(data: bytes) -> bytes:
    """A gzip member without compression: its size depends on the data's size alone."""
    return gzip.compress(data, compresslevel=0, mtime=0)


def test_without_an_index(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"index\.json.*scrapy corpus index"):
        corpus_of(tmp_path).resolve("https://en.example/")
    with pytest.raises(InputError, match=r"no URL index.*scrapy corpus index"):
        ClueWeb22Corpus(tmp_path / "tree").resolve("https://en.example/")


@pytest.mark.parametrize("content", ['{"format": 0}', "[]", "", "{"])
def test_an_index_of_another_version(tmp_path: Path, content: str) -> None:
    corpus = corpus_of(tmp_path)
    build_url_index(corpus, tmp_path / "index")
    (tmp_path / "index/index.json").write_text(content)
    with pytest.raises(InputError, match=r"index\.json has .*; make it again: .*scrapy corpus index"):
        corpus.resolve("https://en.example/")
    build_url_index(corpus, tmp_path / "index")
    assert corpus.resolve(url_of(key_of("en0000-00", 0))) == key_of("en0000-00", 0)


def test_columns_that_vanished(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path)
    build_url_index(corpus, tmp_path / "index")
    next((tmp_path / "index").glob("columns-*")).unlink()
    with pytest.raises(InputError, match=r"missing.*scrapy corpus index"):
        corpus.resolve("https://en.example/")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "index").write_text("a file is in the way")
    with pytest.raises(InputError, match=r"index.*cannot be written"):
        build_url_index(corpus_of(tmp_path), tmp_path / "index")


def test_one_build_at_a_time(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path)
    held = threading.Event()

    def hold() -> float:
        with locked(tmp_path / "index"):
            held.set()
            time.sleep(0.5)
            return time.monotonic()

    with ThreadPoolExecutor(1) as pool:
        released = pool.submit(hold)
        held.wait()
        build_url_index(corpus, tmp_path / "index")
        assert time.monotonic() > released.result()


def test_a_killed_build_goes_on_where_it_stopped(tmp_path: Path) -> None:
    fast = corpus_of(tmp_path, files=30)
    build = start_slow_build(tmp_path)
    parts = tmp_path / "index/parts"
    wait_until(lambda: parts.is_dir() and len(finished(parts)) >= 5)
    workers = workers_of(build.pid)
    build.send_signal(signal.SIGKILL)
    build.communicate()
    wait_until(lambda: not any(is_running(worker) for worker in workers))

    before = finished(parts)
    assert 5 <= len(before) < 30
    assert not (tmp_path / "index/index.json").exists()
    (parts / "left.tmp").write_text("by a build that was killed")
    summary = build_url_index(fast, tmp_path / "index")
    assert (summary.documents, summary.files_kept) == (120, len(before))
    assert {path: path.stat().st_mtime_ns for path in before} == before
    build_url_index(fast, tmp_path / "fresh")
    assert index_files(tmp_path / "index") == index_files(tmp_path / "fresh")
    key = random.Random(0).choice(list(fast.keys()))
    assert fast.resolve(url_of(key)) == key


def start_slow_build(tmp_path: Path) -> subprocess.Popen[bytes]:
    script = f"""
from pathlib import Path
from clueweb22_helpers import SlowCorpus
from simulate.clueweb22.url_index import build_url_index
if __name__ == "__main__":
    build_url_index(SlowCorpus({str(tmp_path / "tree")!r}), Path({str(tmp_path / "index")!r}), jobs=2)
"""
    (tmp_path / "build.py").write_text(script)
    path = os.pathsep.join([str(PROJECT), str(PROJECT / "tests/helpers")])
    return subprocess.Popen(
        [sys.executable, str(tmp_path / "build.py")], env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.PIPE
    )


def finished(parts: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in parts.iterdir() if path.suffix != ".tmp"}


def workers_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 600.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_worker_that_is_killed_is_reported(tmp_path: Path) -> None:
    corpus_of(tmp_path, files=30)
    build = start_slow_build(tmp_path)
    wait_until(lambda: (tmp_path / "index/parts").is_dir() and len(finished(tmp_path / "index/parts")) >= 1)
    for worker in workers_of(build.pid):
        os.kill(worker, signal.SIGKILL)
    _, errors = build.communicate(timeout=600)
    assert build.returncode == 1
    assert b"InputError: an indexing process was killed" in errors

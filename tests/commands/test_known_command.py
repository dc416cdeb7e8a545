"""``scrapy corpus known``: files of known URLs and texts, of whatever one has, whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import time
from argparse import Namespace
from pathlib import Path

import pytest
from crawl_helpers import Web, begin, crawl, crawl_log, error_of, scrapy
from finished_runs import FinishedRuns
from scrapy.settings import Settings

from crawl4llm.base.compression import zstd
from crawl4llm.base.errors import InputError
from crawl4llm.parts.known_texts.work import KnownTexts
from crawl4llm.parts.known_urls.work import KnownUrls
from crawl4llm.scoring.signatures import signature_of
from crawl4llm.tools._text_sources import parquet_rows
from crawl4llm.tools.corpus import known as known_command

pa = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402 - only where there is pyarrow


def url(number: int) -> str:
    return f"https://host{number % 7}.example/{number}?q=%7e"


def text(number: int) -> str:
    return " ".join(f"word{number * 31 % place}" for place in range(1, 60)) + f" number {number}"


ROWS = range(300)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """The same 300 documents as JSON Lines, as Parquet under other names; their URLs in an index and in lists."""
    folder = tmp_path / "sources"
    folder.mkdir()
    lines = [json.dumps({"url": url(number), "text": text(number)}) for number in ROWS]
    (folder / "a.jsonl").write_text("\n".join(lines[:100]) + "\n\n")
    (folder / "b.jsonl.zst").write_bytes(zstd.compress("\n".join(lines[100:200]).encode()))
    (folder / "c.ndjson.gz").write_bytes(gzip.compress("\n".join(lines[200:]).encode()))
    columns = {"link": [url(number) for number in ROWS], "body": [text(number) for number in ROWS]}
    parquet.write_table(pa.table({"other": [0] * len(ROWS), **columns}), tmp_path / "rows.parquet")
    entries = [f"com,x)/ 20260101000000 {json.dumps({'url': url(number), 'status': '200'})}" for number in ROWS]
    failed = 'com,x)/ 20260101000000 {"url": "http://gone.example/", "status": "404"}'
    index = "\n".join(["!OpenWayback-CDXJ 1.0", *entries, failed, "com,x)/ 2026"])
    (tmp_path / "some.cdxj.gz").write_bytes(gzip.compress(index.encode()))
    urls = "\n".join(map(url, ROWS))
    (tmp_path / "urls.txt").write_text(f"# all of them\n{urls}\nno url\n")
    (tmp_path / "urls.zst").write_bytes(zstd.compress(urls.encode()))
    return folder


def known(*args: object) -> subprocess.CompletedProcess[str]:
    """Run the command in one process, unless another number is given."""
    return scrapy("corpus", "known", "--jobs", "1", *map(str, args), "-s", "PROGRESS_BAR=off")


def test_the_same_files_of_whatever_sources(sources: Path, tmp_path: Path) -> None:
    """Of a folder, of columns under other names, of an index and of lists; bad rows are counted, the first is named."""
    first = known(tmp_path / "rows", sources, "--jobs", 2)
    assert first.returncode == 0, first.stderr
    assert sorted(path.name for path in (tmp_path / "rows").iterdir()) == ["texts.known", "urls.known"]
    assert "urls    300 of 300 read (" in first.stdout
    assert f"KNOWN_URLS={tmp_path}/rows/urls.known" in first.stdout
    columns = ("--url-field", "link", "--text-field", "body")
    assert known(tmp_path / "columns", tmp_path / "rows.parquet", *columns).returncode == 0
    lists = known(tmp_path / "lists", tmp_path / "urls*", tmp_path / "some.cdxj.gz", "--jobs", 1)
    assert lists.returncode == 0, lists.stderr
    assert lists.stdout.splitlines()[0].startswith("urls    300 of 900 read")
    assert lists.stdout.splitlines()[1] == (
        "left out 1 a response with status 4xx or 5xx, 1 no CDXJ entry with a URL, 1 no URL; the first: "
        f"{tmp_path}/some.cdxj.gz, line 302: a response with status 4xx or 5xx"
    )
    made = {name: (tmp_path / name / "urls.known").read_bytes() for name in ("rows", "columns", "lists")}
    assert made["rows"] == made["columns"] == made["lists"]
    assert not (tmp_path / "lists/texts.known").exists()
    texts = [(tmp_path / name / "texts.known").read_bytes() for name in ("rows", "columns")]
    assert texts[0] == texts[1]
    urls, seen = KnownUrls([str(tmp_path / "rows/urls.known")]), KnownTexts(tmp_path / "rows/texts.known")
    assert all(urls.why(url(number)) and urls.why(url(number).replace("%7e", "~")) for number in ROWS)
    assert urls.why(url(len(ROWS))) is None
    assert all(seen.knows(text(number), b"") for number in ROWS)


def test_archives_and_exports_of_a_crawl(demo_web: Web, tmp_path: Path) -> None:
    """URLs of archived pages, and their texts where they are asked for: those that the crawl's own export has."""
    run = tmp_path / "run"
    assert crawl(demo_web, run, CRAWL_MAX_PAGES=60, CRAWL_SEEDS=10, SIMULATION_TEXT="extracted").returncode == 0
    assert scrapy("export", str(run), "--format", "jsonl", "--out", str(tmp_path / "export")).returncode == 0
    made = known(tmp_path / "archived", run, "--extract", "-s", "SCORING_WORKERS=2")
    assert made.returncode == 0, made.stderr
    assert known(tmp_path / "exported", tmp_path / "export").returncode == 0
    assert known(tmp_path / "urls", run).returncode == 0
    assert not (tmp_path / "urls/texts.known").exists()
    urls = [(tmp_path / name / "urls.known").read_bytes() for name in ("archived", "exported", "urls")]
    assert urls[0] == urls[1] == urls[2]
    found = KnownUrls([str(tmp_path / "urls/urls.known")])
    assert len(found) == 60
    assert all(found.why(line["url"]) for line in crawl_log(run))
    texts = [KnownTexts(tmp_path / name / "texts.known") for name in ("archived", "exported")]
    exported = [json.loads(line) for path in (tmp_path / "export/documents").iterdir() for line in path.open()]
    for one in exported:
        assert all(some.knows(one["text"], signature_of(one["text"])) for some in texts)


@pytest.mark.parametrize(
    ("given", "content", "said"),
    [
        ("none.jsonl", None, "{0}: cannot be read: No such file or directory"),
        ("a.jsonl", b'{"link": "http://a.example/"}\n', "{0}: no row can be used: line 1: neither 'url' nor 'text' "),
        ("a.jsonl", b"http://a.example/\n", "{0}: no row can be used: line 1: no JSON"),
        ("a.jsonl.gz", gzip.compress(b'{"url": "http://a.example/"}\n' * 99)[:-9], "{0}: cannot be read after line "),
        ("a.parquet", b"PAR1, but no more", "{0}: cannot be read after row 0: "),
        ("a.txt", b"\n# nothing\n", "OUT {out}: the sources have neither URLs nor texts"),
        ("a.txt", b"one.example\n", "{0}: no row can be used: line 1: no URL"),
        ("a.txt", b"x" * 2_000_000, "the list {0} cannot be read after line 0: line 1 has more than 1,048,576 char"),
        ("folder", None, "{0}: holds no archive files, JSON Lines, Parquet or CDXJ; name lists of URLs singly"),
        ("*.jsonl", None, "{0}: matches no file"),
    ],
    ids="missing fields json gzip parquet blank urls line folder pattern".split(),
)
def test_what_cannot_be_used_is_said_in_one_line(tmp_path: Path, given: str, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / given).write_bytes(content)
    if given == "folder":
        (tmp_path / given).mkdir()
    out = tmp_path / "out"
    assert error_of(known(out, tmp_path / given)).startswith(said.format(tmp_path / given, out=out))
    assert not out.exists()
    assert not list(tmp_path.glob(".out.work/*/urls"))


def test_a_folder_that_is_taken_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text("http://a.example/\n")
    said = error_of(known(tmp_path, tmp_path / "urls.txt"))
    assert said == f"OUT {tmp_path}: exists already; give another folder, or remove it"
    assert scrapy("corpus", "known", str(tmp_path / "out")).returncode == 2
    assert [path.name for path in tmp_path.iterdir()] == ["urls.txt"]


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    """A command that failed goes on; of a file of the same name, size and time it knows what was in it."""
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text(f'{{"url": "{url(1)}"}}\n')
    second.write_text("no JSON\n")
    assert "no row can be used" in error_of(known(tmp_path / "out", tmp_path / "*.jsonl", "--jobs", 1))
    changed = first.stat().st_mtime_ns
    first.write_text(f'{{"url": "{url(2)}"}}\n')
    os.utime(first, ns=(changed, changed))
    second.write_text(f'{{"url": "{url(3)}"}}\n')
    assert known(tmp_path / "out", tmp_path / "*.jsonl", "--jobs", 1).returncode == 0
    urls = KnownUrls([str(tmp_path / "out/urls.known")])
    assert [urls.why(url(number)) is not None for number in (1, 2, 3)] == [True, False, True]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl", "out"]


def test_stopped_it_goes_on(tmp_path: Path) -> None:
    """Between files, and then amid one: it leaves nothing that could be taken for the sets; its processes end with it;
    then come the same bytes."""
    words = text(0)
    for part, count in enumerate((1, 5000, 5000, 5000)):
        lines = (f'{{"url": "http://a.example/{part}/{line}", "text": "{line} {words}"}}\n' for line in range(count))
        (tmp_path / f"{part}.jsonl").write_text("".join(lines))
    command = ["corpus", "known", str(tmp_path / "out"), str(tmp_path / "*.jsonl"), "--jobs", "2"]
    done: list[Path] = []
    for number, sign in ((signal.SIGTERM, "[!.]*/told.json"), (signal.SIGKILL, ".*/*")):
        process = begin(command, silent=["out", "err"])
        end = time.monotonic() + 600
        while not (found := list(tmp_path.glob(f".out.work/{sign}"))) and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert process.poll() is None, "it ended before it was stopped"
        process.send_signal(number)
        process.wait()
        done = done or found
        assert not (tmp_path / "out").exists()
        assert all(path.exists() for path in done)
    assert known(*command[2:]).returncode == 0
    assert known(tmp_path / "whole", tmp_path / "*.jsonl").returncode == 0
    files = {name: {one.name: one.read_bytes() for one in (tmp_path / name).iterdir()} for name in ("out", "whole")}
    assert files["out"] == files["whole"]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("content", [b"", b"[", b"[1]", b'[{"urls": -1}, "", ""]', b'{"a": 1}'])
def test_a_damaged_folder_of_a_job(content: bytes, tmp_path: Path) -> None:
    """Left by a command that found a file which could not be read."""
    (tmp_path / "a.jsonl").write_text('{"url": "http://a.example/"}\n')
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"url": "http://b.example/"}\n')[:-9])
    given = tmp_path / "out", tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz", "--jobs", 1
    assert "b.jsonl.gz: cannot be read" in known(*given).stderr
    (told,) = tmp_path.glob(".out.work/*/told.json")
    told.write_bytes(content)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"url": "http://b.example/"}\n'))
    refused = known(*given)
    assert refused.returncode == 1
    assert error_of(refused) == f"{told} is damaged; remove {tmp_path / '.out.work'}, and run the command again"
    assert not (tmp_path / "out").exists()


def test_blocks_of_pages(demo_web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive, and a crawl of a tree, in jobs of any number of pages, here and in tasks."""
    run = tmp_path / "run"
    assert crawl(demo_web, run, CRAWL_MAX_PAGES=40, CRAWL_SEEDS=10, SIMULATION_TEXT="extracted").returncode == 0
    monkeypatch.setattr(known_command, "_BLOCK", 7)
    for name, given in (("archive", ["--extract", run / "warc"]), ("tree", ["--links", run])):
        for out, more in (("whole", []), ("tasks", ["--tasks", 2])):
            made = known(tmp_path / f"{out}-{name}", *given, *more)
            assert made.returncode == 0, made.stderr
        settings = Settings({"PROGRESS_BAR": "off", "SCORING_WORKERS": 0})
        asked = {"extract": name == "archive", "links": name == "tree", "exact": False, "jobs": 1, "tasks": None}
        opts = Namespace(
            arguments=[str(tmp_path / f"blocks-{name}"), str(given[1])], url_field="", text_field="", **asked
        )
        assert list(known_command.KNOWN.run(settings, opts))
        made_files = [
            {path.name: path.read_bytes() for path in (tmp_path / f"{out}-{name}").iterdir()}
            for out in ("whole", "tasks", "blocks")
        ]
        assert made_files[0] == made_files[1] == made_files[2]
        assert len(made_files[0]) == 2


@pytest.mark.parametrize("form", ["warc.gz", "warc", "warc.zst"])
def test_an_archive_that_is_cut_short_is_not_taken_for_whole(
    form: str, finished_runs: FinishedRuns, demo_web: Web, tmp_path: Path
) -> None:
    """What could be read is there; the line says which file is cut, also where it is one of several."""
    run = finished_runs.output("influence")
    if form == "warc.zst":
        run = tmp_path / "run"
        settings = {"WARC_COMPRESSION": "zstd", "WARC_MAX_BYTES": 20_000, "URL_POLICY": "breadth_first"}
        assert crawl(demo_web, run, CRAWL_MAX_PAGES=30, **settings).returncode == 0
    whole, second = sorted((run / "warc").glob("*.warc.*"))[:2]
    folder = tmp_path / "files"
    folder.mkdir()
    data = second.read_bytes() if form != "warc" else gzip.decompress(second.read_bytes())
    (folder / f"b.{form}").write_bytes(data[:-40])
    alone = known(tmp_path / "alone", folder / f"b.{form}")
    assert error_of(alone).startswith(f"{folder}/b.{form}: a record is damaged or cut short; {tmp_path}/alone has")
    assert f" archive repair {folder}" in error_of(alone)
    assert "left out 1 files with damaged records" in alone.stdout
    assert (tmp_path / "alone/urls.known").stat().st_size
    (folder / f"b.{form}").write_bytes(data)
    assert known(tmp_path / "sound", folder / f"b.{form}").returncode == 0
    if form != "warc":
        return
    (folder / f"b.{form}").write_bytes(data[:-40])
    (folder / f"a.{whole.name.partition('.')[2]}").write_bytes(whole.read_bytes())
    both = error_of(known(tmp_path / "both", folder))
    assert both.startswith(f"{folder}/b.{form}: a record is")


@pytest.mark.parametrize("name", ["b.jsonl.zst", "c.ndjson.gz", "list.txt.gz", "index.cdxj.gz", "rows.parquet"])
def test_other_files_that_are_cut_short_are_refused(name: str, sources: Path, tmp_path: Path) -> None:
    entries = [f"com,x)/ 20260101000000 {json.dumps({'url': url(number), 'status': '200'})}\n" for number in ROWS]
    (sources / "list.txt.gz").write_bytes(gzip.compress("\n".join(map(url, ROWS)).encode()))
    (sources / "index.cdxj.gz").write_bytes(gzip.compress("".join(entries).encode()))
    whole = sources / name if (sources / name).exists() else tmp_path / name
    cut = tmp_path / "cut" / name
    cut.parent.mkdir()
    cut.write_bytes(whole.read_bytes()[:-9])
    assert str(cut) in error_of(scrapy("corpus", "known", str(tmp_path / "out"), str(cut)))
    assert not (tmp_path / "out").exists()


def test_a_pipe_by_the_name_of_a_parquet_file_is_refused(tmp_path: Path) -> None:
    """By the reader that exports to be purged and texts to learn have too; opening it would wait for a writer."""
    os.mkfifo(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"rows\.parquet: cannot be read after row 0"):
        next(parquet_rows(tmp_path / "rows.parquet", ["text"], "give another"))

"""``scrapy corpus build``: what it writes, from what, and what a kill, a hanging page or a full disk does to it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from build_helpers import (
    Deadly,
    Empty,
    Hostile,
    build,
    by_url,
    first_members,
    ids,
    json_records,
    records_of,
    text_page,
    warc_corpus,
)
from clueweb22_helpers import html_record, key_of, member, text_record, write_file, write_tree
from crawl_helpers import Web, begin_python, scrapy
from demo_helpers import digests
from scrapy.cmdline import execute
from scrapy.settings import Settings
from scrapy_server import Process
from warc_helpers import DATE, html_of, url_of, write

import simulate.build as build_module
from crawl4llm.base.errors import InputError, MissingRecord
from crawl4llm.scoring.text import EXTRACTORS, extract_text
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.warcs.corpus import WarcCorpus

KEYS = [key_of("en0000-00", record) for record in range(6)]
SENTENCE = "A sentence that is long enough to be taken for what somebody came here to read, at the least."
ARTICLE = f"<html><body><article><p>{SENTENCE}</p></article></body></html>"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree of five archived pages."""
    folder = tmp_path_factory.mktemp("built")
    build(warc_corpus(folder, [1, 2, 3, 4, 5]), folder / "tree")
    return folder / "tree"


# -- what is written, read as the format page says ---------------------------------------------------------------------


def test_layout(built: Path) -> None:
    files = {str(path.relative_to(built)) for path in built.rglob("*") if path.is_file()}
    data = {
        f"{kind}/en/en00/en0000/en0000-00{suffix}"
        for kind, suffixes in {
            "html": (".warc.gz", ".warc.offset"),
            "txt": (".json.gz", ".offset"),
            "outlink": (".json.gz", ".offset"),
            "inlink": (".json.gz", ".offset"),
        }.items()
        for suffix in suffixes
    }
    counts = {f"record_counts/record_counts/{kind}/en00_counts.csv" for kind in ("html", "txt", "outlink", "inlink")}
    assert files == data | counts | {"README.txt", "version_A_1.0", "manifest.tsv", "opt_outs.tsv", "build.json"}
    assert {(built / name).read_text() for name in counts} == {"en0000-00,5\n"}


def test_txt(built: Path) -> None:
    for number, (key, record) in enumerate(zip(KEYS, json_records(built, "txt"), strict=False), start=1):
        url = url_of(number)
        text = extract_text(html_of(number, []), EXTRACTORS["trafilatura"])
        assert record is not None
        assert record.pop("Clean-Text").startswith(text)
        hashed = hashlib.md5(url.encode()).hexdigest().upper()
        assert record == {"URL": f"{url}\n", "URL-hash": hashed, "Language": "en", "ClueWeb22-ID": key}


def test_html(built: Path) -> None:
    records = records_of(built, "html")
    assert len(records) == 5
    for number, (key, record) in enumerate(zip(KEYS, records, strict=False), start=1):
        head, _, rest = record.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        assert (fields["WARC-Type"], fields["WARC-Target-URI"]) == ("response", url_of(number))
        assert (fields["ClueWeb22-ID"], fields["WARC-Date"], fields["Language"]) == (key, DATE, "en")
        html = rest[: int(fields["Content-Length"])]
        assert html.startswith(html_of(number)), "the HTML itself, without an HTTP head"
        assert rest[len(html) :] == b"\r\n\r\n"


def test_outlinks_and_inlinks(built: Path) -> None:
    def end(url: str, anchor: str, key: str | None) -> list[Any]:
        return [url, hashlib.md5(url.encode()).hexdigest().upper(), anchor, "0", "en" if key else "", key]

    def link(page: int, anchor: str | None = None) -> list[Any]:
        return end(url_of(page), anchor or f"to {url_of(page)}", KEYS[page - 1])

    else_where = end("https://else.example/", "to https://else.example/", None)
    old = end("https://site.example/old", "to /old#top", KEYS[0])
    outlinks = [record and record["outlinks"] for record in json_records(built, "outlink")]
    assert outlinks[0] == [link(2), else_where, link(3)], "not the one to the page itself, by a redirect"
    assert outlinks[1] == [link(3), old, else_where, link(4)]
    inlinks = [record and record["anchors"] for record in json_records(built, "inlink")]
    to_first = f"to {url_of(1)}"
    assert inlinks[0] == [
        *(link(source, "to /old#top") for source in (2, 3)),
        link(4, "to /old#top"),
        link(4, to_first),
        link(5, to_first),
        link(5, "to /old#top"),
    ]


def test_links_of_nothing_but_ids(built: Path, tmp_path: Path) -> None:
    """As the published implementation reads them unless it is told otherwise: ``x[0]`` of each link, where not null."""
    done = _command(tmp_path, "--from", built, "--to", "slim", "--link-id-position", 0)
    assert (done.returncode, done.stderr) == (0, "")
    for kind, field in (("outlink", "outlinks"), ("inlink", "anchors")):
        slim, full = json_records(tmp_path / "slim", kind), json_records(built, kind)
        for one, other in zip(slim, full, strict=True):
            links = [link[5:] for link in other[field]] if other else None
            assert one == (other and {**other, field: links})
    corpus = ClueWeb22Corpus(tmp_path / "slim")
    for key in KEYS[:5]:
        assert [link.key for link in corpus.outlinks(key)] == [
            link.key for link in ClueWeb22Corpus(built).outlinks(key)
        ]
    assert "another corpus, or with other settings" in _command(tmp_path, "--from", built, "--to", "slim").stderr


def test_inlinks_are_the_inverse_of_outlinks(demo_build: Path) -> None:
    outlinks = [record for record in json_records(demo_build, "outlink") if record]
    inlinks = [record for record in json_records(demo_build, "inlink") if record]
    forth = [
        (target, record["ClueWeb22-ID"], anchor, flag)
        for record in outlinks
        for _, _, anchor, flag, _, target in record["outlinks"]
        if target
    ]
    back = [
        (record["ClueWeb22-ID"], source, anchor, flag)
        for record in inlinks
        for _, _, anchor, flag, _, source in record["anchors"]
    ]
    english = [link for link in forth if link[0].startswith("clueweb22-en")]
    assert len(english) > 5000
    assert sorted(english) == sorted(link for link in back if link[1].startswith("clueweb22-en"))
    for record in inlinks:
        sources = [source for *_, source in record["anchors"]]
        assert sources == sorted(sources)


# -- from a ClueWeb22 tree ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo_build(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo web, built again by one process."""
    to = tmp_path_factory.mktemp("demo") / "tree"
    build(ClueWeb22Corpus(demo_web.corpus), to)
    return to


def test_a_rebuilt_tree_holds_what_the_first_one_does(demo_web: Web, demo_build: Path) -> None:
    source, tree = ClueWeb22Corpus(demo_web.corpus), ClueWeb22Corpus(demo_build)
    tree.check()
    new_ids = ids(demo_build)
    assert list(new_ids) == list(source.keys())
    assert sorted(new_ids.values()) == list(tree.keys())
    for key, new_id in new_ids.items():
        before, after = source.page(key), tree.page(new_id)
        assert (after.html, after.url, after.date, after.language) == (
            before.html,
            before.url,
            before.date,
            before.language,
        )
        assert tree.text(new_id) == source.text(key)
        expected = [link._replace(key=new_ids.get(link.key or "")) for link in before.outlinks or []]
        assert after.outlinks == expected


def test_damaged_and_absent_records_leave_a_hole(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", files=["en0000-00"], records=4)
    for kind in ("html", "outlink", "inlink"):
        shutil.rmtree(source / kind)
    members = [member(text_record(KEYS[0])), b"damaged", member(b""), member(text_record(KEYS[3], text=""))]
    write_file(source, "txt", "en0000-00", members)
    summary = build(ClueWeb22Corpus(source), tmp_path / "tree")
    assert summary == {
        "documents": 2,
        "links": 0,
        "links to pages of the tree": 0,
        "unreadable: corrupt_record": 1,
        "unreadable: http_404": 1,
        "without text: no_text": 1,
    }
    assert [bool(record) for record in records_of(tmp_path / "tree", "txt")] == [True, False, False, True]
    assert records_of(tmp_path / "tree", "outlink") == [b"\n", b"", b"", b"\n"]
    assert not (tmp_path / "tree/html").exists(), "no page has HTML"
    tree = ClueWeb22Corpus(tmp_path / "tree")
    assert tree.page(KEYS[3]).text == ""
    with pytest.raises(MissingRecord):
        tree.page(KEYS[1])


# -- text --------------------------------------------------------------------------------------------------------------


def test_text_is_extracted_where_the_source_has_none_or_where_told_so(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "source", files=["en0000-00"])
    write_file(root, "html", "en0000-00", [member(html_record(key, ARTICLE)) for key in KEYS[:3]])
    source = ClueWeb22Corpus(root)
    build(source, tmp_path / "stored")
    build(source, tmp_path / "extracted", always_extract=True)
    assert ClueWeb22Corpus(tmp_path / "stored").text(KEYS[0]) == f"Text of {KEYS[0]}."
    assert ClueWeb22Corpus(tmp_path / "extracted").text(KEYS[0]) == SENTENCE


def test_a_page_without_text_stays(tmp_path: Path) -> None:
    write(tmp_path / "a.warc.gz", text_page(1, "<html></html>"), text_page(2, ARTICLE))
    summary = build(WarcCorpus(tmp_path / "a.warc.gz", tmp_path / "index"), tmp_path / "tree")
    assert summary["without text: no_text"] == 1
    assert [record and record["Clean-Text"] for record in json_records(tmp_path / "tree", "txt")] == [
        "",
        SENTENCE,
    ]


@pytest.mark.slow
def test_a_page_that_hangs_or_kills_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "_SECONDS_PER_PAGE", 0.0)
    source = Hostile(write_tree(tmp_path / "source", files=["en0000-00"], records=6))
    summary = build(source, tmp_path / "tree", jobs=2, time_limit=0.8)
    assert summary["documents"] == 4
    assert summary["without text: timeout"] == 1
    assert summary["without text: killed"] == 1
    assert summary["unreadable: timeout"] == 1
    assert summary["unreadable: error"] == 1
    texts = [record and record["Clean-Text"] for record in json_records(tmp_path / "tree", "txt")]
    assert texts == [f"Text of {KEYS[0]}.", "", "", None, None, f"Text of {KEYS[5]}."]
    pages = ClueWeb22Corpus(tmp_path / "tree")
    assert pages.html(KEYS[2]) == source.html(KEYS[2])
    assert [link.key for link in pages.outlinks(KEYS[2])] == [KEYS[3], None, None]


# -- the same bytes ----------------------------------------------------------------------------------------------------

BUILD = """
import sys
from pathlib import Path
from build_helpers import Slow, build
build(Slow(sys.argv[1]), Path(sys.argv[2]), jobs=2, fork=False)
"""


def _start(source: Path, to: Path) -> Process:
    """A build in a process with another hash seed than this one has."""
    return begin_python("-c", BUILD, source, to)


@pytest.mark.parametrize(
    "stage", [".build/pages/*[0-9]", ".build/links/en*[0-9]", "inlink"], ids=["reading", "writing", "inlinks"]
)
def test_a_killed_build_goes_on_and_ends_in_the_same_bytes(
    demo_web: Web, demo_build: Path, tmp_path: Path, stage: str
) -> None:
    to = tmp_path / "tree"
    killed = _start(demo_web.corpus, to)
    _wait_until(lambda: any(to.glob(stage)) or killed.poll() is not None)
    killed.kill()
    killed.communicate(timeout=600)
    chunks = len(list(to.glob(".build/pages/*[0-9]")))
    if (to / ".build").exists():  # on a busy machine it may have ended before it was killed
        (to / ".build/.left-over.1.tmp").touch()
    build(ClueWeb22Corpus(demo_web.corpus), to, jobs=2)
    assert 0 < chunks < 15 or "pages" not in stage, "it was not killed while it read"
    assert digests(to) == digests(demo_build)


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", files=["en0000-00"])
    build(ClueWeb22Corpus(source), tmp_path / "tree")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "tree").rglob("*")}
    first = build(ClueWeb22Corpus(source), tmp_path / "tree")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "tree").rglob("*")} == before
    assert first["documents"] == 3


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# -- bad input ---------------------------------------------------------------------------------------------------------


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    source = ClueWeb22Corpus(write_tree(tmp_path / "source"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("mine")
    for to, words in ((tmp_path / "mine", "not an empty folder"), (tmp_path / "mine/file", "not a folder")):
        with pytest.raises(InputError, match=f"{to}: {words}"):
            build(source, to)
    with pytest.raises(InputError, match="not an empty folder"):
        build(source, source.root)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]
    assert not (source.root / ".build").exists()


def test_a_build_of_something_else_is_left_alone(tmp_path: Path) -> None:
    source = ClueWeb22Corpus(write_tree(tmp_path / "source"))
    build(source, tmp_path / "tree")
    before = digests(tmp_path / "tree")
    other = ClueWeb22Corpus(write_tree(tmp_path / "other", records=2))
    for changed in ({}, {"always_extract": True}):
        with pytest.raises(InputError, match="holds a build of another corpus, or with other settings"):
            build(other if not changed else source, tmp_path / "tree", **changed)
    assert digests(tmp_path / "tree") == before


def test_a_source_without_pages(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no pages to build from"):
        build(Empty(write_tree(tmp_path / "source")), tmp_path / "tree")


def test_a_process_that_is_killed_while_it_writes(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", files=["en0000-00"])
    with pytest.raises(InputError, match="a process of the build was killed"):
        build(Deadly(source), tmp_path / "tree")
    assert build(ClueWeb22Corpus(source), tmp_path / "tree")["pages with html"] == 3


def test_two_builds_in_one_folder(demo_web: Web, tmp_path: Path) -> None:
    process = _start(demo_web.corpus, tmp_path / "tree")
    try:
        _wait_until(lambda: any((tmp_path / "tree").glob(".build/pages/*[0-9]")))
        with pytest.raises(InputError, match="another process is building there"):
            build(ClueWeb22Corpus(demo_web.corpus), tmp_path / "tree")
    finally:
        process.kill()
        process.communicate(timeout=600)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission(tmp_path: Path) -> None:
    source = ClueWeb22Corpus(write_tree(tmp_path / "source"))
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(InputError, match=r"closed/tree.*Permission denied"):
        build(source, tmp_path / "closed/tree")


def test_a_full_disk(demo_web: Web, demo_build: Path, tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(mount)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    try:
        with pytest.raises(InputError, match=r"the tree cannot be written \(No space left on device\)"):
            build(ClueWeb22Corpus(demo_web.corpus), mount / "tree", jobs=2)
        assert any((mount / "tree/.build/pages").iterdir())
        shutil.copytree(mount / "tree", tmp_path / "tree")
    finally:
        subprocess.run(["umount", "--lazy", str(mount)], check=True)
    build(ClueWeb22Corpus(demo_web.corpus), tmp_path / "tree")
    assert digests(tmp_path / "tree") == digests(demo_build)


# -- the command -------------------------------------------------------------------------------------------------------


def _command(folder: Path, *args: object) -> subprocess.CompletedProcess[str]:
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = here\n")
    (folder / "here.py").write_text('COMMANDS_MODULE = "crawl4llm.commands"\n')
    return scrapy("corpus", "build", *map(str, args), cwd=folder)


def test_command(tmp_path: Path) -> None:
    write_tree(tmp_path / "source", files=["en0000-00"])
    done = _command(tmp_path, "--from", "source", "--to", "tree", "--jobs", "2")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split("  ") for line in done.stdout.splitlines()]
    assert [(line[0], line[-1].strip()) for line in lines] == [
        ("documents", "3"),
        ("links", "9"),
        ("links to pages of the tree", "3"),
        ("pages with html", "3"),
        ("tree", "tree"),
    ]
    again = _command(tmp_path, "--to", "tree", "-s", "CORPUS=source")
    assert (again.returncode, again.stdout) == (0, done.stdout)
    url = ClueWeb22Corpus(tmp_path / "tree").url(KEYS[1])
    shown = scrapy("corpus", "show", url, "-s", "CORPUS=tree", cwd=tmp_path)
    assert KEYS[1] in shown.stdout, shown.stderr  # by the URL index that the build has left


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--from", "source"], "give the folder to build in: --to DIR"),
        (["--from", "no-such", "--to", "tree"], "no-such"),
        (["--from", "source", "--to", "file"], "file: not a folder"),
        (["--from", "source", "--to", "tree", "--manifest", "none"], "none cannot be read: No such file or directory"),
    ],
)
def test_command_bad_input(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    words: str,
) -> None:
    write_tree(tmp_path / "source")
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as raised:
        execute(["scrapy", "corpus", "build", *args], Settings({"COMMANDS_MODULE": "crawl4llm.commands"}))
    assert raised.value.code == 1
    errors = capsys.readouterr().err
    assert words in errors
    assert errors.count("\n") == 1
    assert not (tmp_path / "tree").exists()


# -- the real web ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_sample_of_the_real_web_agrees_with_another_program(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """All of it: benchmarks/building.py."""
    archive, reference = shared("corpora/real-web/real-web-00001.warc.gz"), shared("clueweb22-real")
    (tmp_path / "sample.warc.gz").write_bytes(first_members(archive, 60))
    build(WarcCorpus(tmp_path / "sample.warc.gz", tmp_path / "index"), tmp_path / "tree", jobs=2)
    ours, theirs = by_url(tmp_path / "tree", ["en0000-00"]), by_url(reference, ["en0000-00", "en0000-01"])
    assert len(ours) > 50
    assert ours.keys() <= theirs.keys()
    texts = sum(ours[url][0] == theirs[url][0] for url in ours)
    targets = sum(ours[url][1] == theirs[url][1] & ours.keys() for url in ours)
    assert texts >= 0.97 * len(ours)
    assert targets >= 0.97 * len(ours)
    assert sum(len(found) for _, found in ours.values()) > len(ours)


# -- another reader ----------------------------------------------------------------------------------------------------

IR_DATASETS = """
import json, sys
import ir_datasets
from ir_datasets_clueweb22 import register
register()
docs = ir_datasets.load(sys.argv[1])
wanted = [doc.doc_id for doc in docs.docs_iter()]
found = [docs.docs_store().get(key) for key in wanted[-2:]]
docs = [doc._asdict() for doc in docs.docs_iter()] + [doc._asdict() for doc in found]
json.dump(docs, sys.stdout, default=str)
"""


def test_ir_datasets_reads_it(built: Path, tmp_path: Path) -> None:
    """Its reader of ClueWeb22, ir-datasets-clueweb22, looks for the record counts a folder higher than the dataset's
    documentation has them."""
    pytest.importorskip("ir_datasets_clueweb22", reason="needs pip install ir-datasets-clueweb22")
    corpus = tmp_path / "clueweb22/corpus"
    corpus.mkdir(parents=True)
    for name in ("README.txt", "version_A_1.0", "txt", "html", "inlink", "outlink"):
        (corpus / name).symlink_to(built / name)
    (corpus / "record_counts").symlink_to(built / "record_counts/record_counts")
    done = subprocess.run(
        [sys.executable, "-c", IR_DATASETS, "clueweb22/b/as-l"],
        env={**os.environ, "IR_DATASETS_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    docs = json.loads(done.stdout)
    expected = [
        {
            "doc_id": record["ClueWeb22-ID"],
            "url": record["URL"].strip(),
            "url_hash": record["URL-hash"],
            "language": "en",
            "text": record["Clean-Text"],
        }
        for record in json_records(built, "txt")
        if record
    ]
    assert docs == expected + expected[-2:]

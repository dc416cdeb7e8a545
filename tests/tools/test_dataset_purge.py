"""``scrapy archive purge``: nothing of the domain is left, everything else is, and it is done or not done."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from archive_helpers import fastwarc_records, warcio_check
from dataset_helpers import (
    PAGES,
    TWIN_OF,
    archive,
    body,
    done,
    host_of_page,
    problems,
    refused,
    tree,
    write_finished,
    write_run,
)
from terminal_helpers import at_terminal

from crawl4llm.base.domains import Domain, domain_to_purge
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.tools.archive.removal import purge
from crawl4llm.tools.export.formats import FORMATS, Document, ShardWriter
from crawl4llm.warc.cdxj import SIGNALS, IndexLine, parse_index_line, read
from crawl4llm.warc.reader import read_record

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DOMAIN = "two.example"
LEFT = [number for number in range(PAGES) if not host_of_page(number).endswith(DOMAIN)]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_finished(tmp_path_factory.mktemp("purge") / "run")


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture(scope="module")
def purged(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = Path(shutil.copytree(finished, tmp_path_factory.mktemp("purged") / "run"))
    done("purge", DOMAIN, run)
    return run


def contents(run: Path) -> bytes:
    """Everything that a dataset holds, decompressed."""
    unpack = {".gz": gzip.decompress, ".zst": zstd.decompress}
    return b"".join(unpack.get(Path(name).suffix, bytes)(data) for name, data in tree(run).items())


def lines(run: Path) -> list[IndexLine]:
    found = map(parse_index_line, (run / "warc/index.cdxj").read_bytes().splitlines(keepends=True))
    return [line for line in found if line]


def test_nothing_of_the_domain_is_left(finished: Path, purged: Path) -> None:
    assert DOMAIN.encode() in contents(finished)
    left = contents(purged).replace(b'"domain": "two.example"', b"")
    assert DOMAIN.encode() not in left
    assert b"page 1." not in left  # a text of the domain
    assert b"/to-12" not in left  # a redirect through it, to a page of another


def test_everything_else_is_left(purged: Path) -> None:
    assert done("check", purged).startswith("sound: 7 files")
    warcio_check((purged / "warc").glob("*.gz"))
    entries = list(read(purged / "warc/index.cdxj"))
    assert [entry.id for entry in entries] == [f"doc-{number:03d}" for number in LEFT]
    assert {read_record(purged / "warc", entry) for entry in entries} == {body(number) for number in LEFT}
    assert [json.loads(line)["order"] for line in (purged / "crawl.jsonl").read_text().splitlines()] == LEFT
    assert (purged / "warc/sorted.cdxj").read_bytes() == b"".join(
        sorted((purged / "warc/index.cdxj").read_bytes().splitlines(keepends=True))
    )


def test_a_revisit_of_what_went_has_its_payload(finished: Path, purged: Path) -> None:
    before = {entry.id: entry for entry in read(finished / "warc/index.cdxj")}
    after = {entry.id: entry for entry in read(purged / "warc/index.cdxj")}
    assert after["doc-027"].mime == "warc/revisit"  # of another page that is left
    signals = [parsed.fields.get(SIGNALS) for parsed in lines(purged) if parsed.id[-3:] in {"011", "023", "027", "031"}]
    assert signals == ["head X-Robots-Tag noai"] * 4
    for number in (11, 23, 31):
        key = f"doc-{number:03d}"
        assert (before[key].mime, after[key].mime) == ("warc/revisit", "text/html")
        assert (after[key].url, after[key].status, after[key].digest) == (
            before[key].url,
            before[key].status,
            before[key].digest,
        )
        records = [record for file in (purged / "warc").glob("c-0*") for record in fastwarc_records(file)]
        (record,) = (
            one for one in records if one.head.get("WARC-Target-URI") == after[key].url and one.kind == "response"
        )
        assert record.content == body(TWIN_OF[number])
        entry = after[key]
        data = (purged / "warc" / entry.filename).read_bytes()[entry.offset : entry.offset + entry.length]
        assert f"X-Url: {entry.url}".encode() in gzip.decompress(data)  # the head that its own server sent
        assert {name for name in record.head if name.startswith("WARC-Refers-To")} == set()
        assert "WARC-Profile" not in record.head
        assert "WARC-Truncated" not in record.head


def test_what_went_is_noted(finished: Path, purged: Path) -> None:
    (note,) = [json.loads(line) for line in (purged / "purged.jsonl").read_text().splitlines()]
    went = {
        record.head["WARC-Record-ID"]
        for file in (finished / "warc").glob("*.gz")
        for record in fastwarc_records(file)
        if DOMAIN in record.head.get("WARC-Target-URI", "")
        or record.head.get("WARC-Target-URI", "").endswith("/to-14")  # a redirect to a page of the domain
    }
    assert set(note["records"]) == went
    assert (note["domain"], note["counts"]["documents"]) == (DOMAIN, PAGES - len(LEFT))
    assert done("purge", DOMAIN, purged) == f"nothing of {DOMAIN} in {purged}\n"


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_one_host_and_a_second_purge(tmp_path: Path, compression: str) -> None:
    run = tmp_path / "run"
    write_run(run, compression=compression, pages=24)
    done("purge", "www.two.example", run)
    assert b"www.two.example" not in contents(run).replace(b'"domain": "www.two.example"', b"")
    assert b"//two.example" in contents(run)
    done("purge", "three.example", run)
    assert done("check", run).startswith("sound")
    assert len((run / "purged.jsonl").read_text().splitlines()) == 2


def test_a_copy_with_trec_ids_states_its_new_counts(finished: Path, tmp_path: Path) -> None:
    done("finish", finished, "--trec-ids", "C", "--out", tmp_path / "copy")
    done("purge", DOMAIN, tmp_path / "copy")
    assert done("check", tmp_path / "copy").startswith("sound")


def test_a_list_by_another_program_is_written_anew(run: Path) -> None:
    """md5sum puts two spaces, or a space and an asterisk, before a name; what a list does not know stays in it."""
    files = sorted((run / "warc").glob("*.warc.gz"))
    digests = (hashlib.md5(path.read_bytes()).hexdigest() for path in files)
    lines = [f"{md5} {' *'[number % 2]}{files[number].name}\n" for number, md5 in enumerate(digests)]
    (run / "warc/mine.md5").write_text("".join([*lines, f"{'0' * 32}  elsewhere\n"]))
    done("purge", DOMAIN, run)
    ours = (run / "warc/archive.md5").read_text()
    assert (run / "warc/mine.md5").read_text() == f"{ours}{'0' * 32} ./elsewhere\n"
    assert problems(run) == [f"mine.md5: line {len(files) + 1}: names ./elsewhere, which is not there"]


def test_listing_of_the_frontier(run: Path) -> None:
    """It names a page whose URL, as a corpus has it, is of the domain; it is used up."""
    listing = run / f"purge-{DOMAIN}.jsonl"
    listing.write_text(json.dumps({"id": "doc-000", "url": "http://x.two.example/"}) + "\n")
    done("purge", DOMAIN, run)
    assert not listing.exists()
    assert "doc-000" not in {entry.id for entry in read(run / "warc/index.cdxj")}
    assert done("check", run).startswith("sound")


def test_a_damaged_dataset_is_not_purged(run: Path) -> None:
    path = run / "warc/c-00003.warc.gz"
    os.truncate(path, path.stat().st_size - 10)
    before = tree(run)
    assert f"{path}: damaged at" in refused("purge", DOMAIN, run)
    assert tree(run) == before
    assert "is not a domain" in refused("purge", "a b", run)


# -- killed at any moment, or without room ----------------------------------------------------------------------------


def in_a_process(work: Callable[[], object], kill_at: int, temporary: Path) -> bool:
    """Do work in a process of its own, killed before its nth call that changes the disk; whether it came to its end."""
    pid = os.fork()
    if pid == 0:
        calls = 0

        def counted(name: str) -> Callable[..., Any]:
            real = getattr(os, name)

            def call(*args: Any, **kwargs: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)

            return call

        for name in ("fsync", "replace", "rename", "unlink"):
            setattr(os, name, counted(name))
        with redirect_stdout(io.StringIO()), patch.object(tempfile, "tempdir", str(temporary)):
            work()
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def without_note(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if name != "purged.jsonl"}


@pytest.mark.slow
def test_killed_while_it_purges(finished: Path, purged: Path, tmp_path: Path) -> None:
    before, after = tree(finished), without_note(tree(purged))
    ended, kill_at = False, 1
    seen = set()
    while not ended:
        run = Path(shutil.copytree(finished, tmp_path / str(kill_at)))
        ended = in_a_process(lambda at=run: list(purge(Dataset(at), Domain(DOMAIN), 1)), kill_at, tmp_path)
        found = {name: data for name, data in tree(run).items() if not Path(name).name.startswith(".")}
        if (run / ".archive-changes.json").exists():
            seen.add("between")
            assert "was interrupted; run its command again" in refused("check", run)
        else:
            seen.add("before" if found == before else "after")
            assert found == before or without_note(found) == after
        done("purge", DOMAIN, run)
        assert without_note(tree(run)) == after
        shutil.rmtree(run)
        kill_at += 5
    assert seen == {"before", "between", "after"}


@pytest.mark.slow
def test_killed_while_it_finishes(finished: Path, tmp_path: Path) -> None:
    after = tree(finished)
    ended, kill_at = False, 1
    while not ended:
        run = tmp_path / str(kill_at)
        shutil.copytree(finished, run, ignore=shutil.ignore_patterns("archive*", "sorted.cdxj"))
        (run / "warc/c-00005.warc.gz").rename(run / "warc/c-00005.warc.gz.open")
        ended = in_a_process(lambda at=run: archive("finish", at), kill_at, tmp_path)
        done("finish", run)
        assert tree(run) == after
        kill_at += 4


def test_full_disk(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(run)

    def full(fd: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device" in refused("purge", DOMAIN, run)
    assert tree(run) == before
    assert "No space left on device" in refused("finish", run)
    monkeypatch.undo()
    assert tree(run) == before


# -- exports ----------------------------------------------------------------------------------------------------------


def write_export(folder: Path, form: str) -> list[Document]:
    """An export as `scrapy export` leaves it, in two files."""
    documents = [
        Document(
            f"doc-{n}", f"Text of {n}.", f"https://{host_of_page(n)}/{n}", None, "en", 0.5, 3, n / 12, "c", n, 1, None
        )
        for n in range(12)
    ]
    (folder / "documents").mkdir(parents=True)
    shards = []
    for number, part in enumerate((documents[:8], documents[9:11])):
        name = f"{number:05d}.{form}"
        with (folder / "documents" / name).open("wb") as file:
            shard = ShardWriter(file, form)
            for document in part:
                shard.add(document)
            entry = shard.finish(name).entry()
        assert entry["text_bytes"] == sum(len(document.text) for document in part)
        del entry["languages"]  # by a version that counted none
        shards.append(entry)
    manifest = {"settings": {}, "documents": 10, "tokens": {"words": 30}, "text_bytes": 0, "shards": shards}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return documents


@pytest.mark.parametrize("form", FORMATS)
def test_exports(purged: Path, tmp_path: Path, form: str) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / "export"
    write_export(out, form)
    told = done("purge", DOMAIN, purged, "--export", out)
    assert told.splitlines()[-1] == f"{out}: 6 documents"
    manifest = json.loads((out / "manifest.json").read_text())
    (shard,) = manifest["shards"]  # the other one held nothing else
    assert (shard["documents"], shard["words"], manifest["documents"], manifest["tokens"]) == (4, 12, 4, {"words": 12})
    assert [note["domain"] for note in manifest["purged"]] == [DOMAIN]
    (path,) = (out / "documents").iterdir()
    assert (path.stat().st_size, path.name) == (shard["bytes"], shard["name"])
    if form == "parquet":
        from pyarrow import parquet

        rows = parquet.read_table(path).to_pylist()
    else:
        rows = [json.loads(line) for line in contents(out / "documents").splitlines()]
    assert [(row["url"], row["words"], row["link_share"]) for row in rows] == [
        (f"https://{host_of_page(number)}/{number}", 3, number / 12) for number in (0, 3, 4, 7)
    ]
    assert done("purge", DOMAIN, purged, "--export", out).splitlines()[-1] == f"{out}: 0 documents"
    assert "holds no finished export" in refused("purge", DOMAIN, purged, "--export", tmp_path)


@pytest.mark.parametrize("option", ["--listing", "--export"])
@pytest.mark.parametrize("named", ["none", "a folder"])
def test_what_is_named_wrongly_is_told_before_anything_goes(run: Path, tmp_path: Path, option: str, named: str) -> None:
    """Whoever has opted out is not to be left in a dataset, or in an export, because of a slip of the pen."""
    (tmp_path / "a folder").mkdir()
    before = contents(run)
    said = refused("purge", DOMAIN, run, option, tmp_path / named)
    assert str(tmp_path / named) in said
    assert ("cannot be read" if option == "--listing" else "holds no finished export") in said
    assert contents(run) == before


# -- questions ------------------------------------------------------------------------------------------------------


def test_a_link_to_the_archive_leads_to_the_whole_run(run: Path, purged: Path, tmp_path: Path) -> None:
    link = tmp_path / "archive"
    link.symlink_to(run / "warc")
    done("purge", DOMAIN, link)
    assert (run / "crawl.jsonl").read_bytes() == (purged / "crawl.jsonl").read_bytes()


@pytest.mark.parametrize("suffix", ["com", "CO.UK.", "github.io", "kawasaki.jp", "xn--p1ai", "\u0440\u0444", "example"])
def test_a_public_suffix_is_purged_only_where_that_is_meant(run: Path, suffix: str) -> None:
    before = contents(run)
    assert f"{Domain(suffix).name} is a public suffix" in refused("purge", suffix, run)
    assert contents(run) == before
    if suffix == "example":
        done("purge", suffix, run, "--whole-suffix")
        assert DOMAIN.encode() not in contents(run / "warc")


@pytest.mark.parametrize("domain", ["example.com", "a.github.io", "www.ck", "city.kawasaki.jp", "127.0.0.1", "a.test"])
def test_what_one_owner_has_is_no_public_suffix(domain: str) -> None:
    assert domain_to_purge(domain, whole_suffix=False).name == domain


def test_somebody_at_a_terminal_is_asked(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "export"
    write_export(out, "jsonl")
    before = contents(run), contents(out)
    command = ("archive", "purge", DOMAIN, run, "--export", out, "--jobs", "1")
    for typed in ("n\n", "yesterday\n"):
        seen = at_terminal(*command, typed=typed)
        assert (seen.status, seen.out) == (1, "")
        assert f"purge {DOMAIN} and all below it from {run}: 20 documents, 80 records, " in seen.screen
        assert "not confirmed, and not done" in seen.screen
        assert (contents(run), contents(out)) == before
    seen = at_terminal(*command, typed="y\nn\n")
    assert seen.status == 1
    assert f"from {out}: 6 documents; go on? [y/N]" in seen.screen
    assert contents(out) == before[1]
    assert DOMAIN.encode() not in contents(run / "warc")
    seen = at_terminal(*command, "--yes")
    assert (seen.status, "?" in seen.screen) == (0, False)
    assert f"{out}: 6 documents" in seen.out


def test_problems_after_a_hand_made_purge(run: Path) -> None:
    """A check knows that somebody took a page out of the log only."""
    lines = (run / "crawl.jsonl").read_bytes().splitlines(keepends=True)
    (run / "crawl.jsonl").write_bytes(b"".join(line for line in lines if b"two.example" not in line))
    assert len(problems(run)) == PAGES - len(LEFT)


def test_files_for_their_owner_alone_stay_so(run: Path, tmp_path: Path) -> None:
    """As they are where a crawl archives credentials."""
    for file in (run / "warc").glob("*.warc.gz"):
        file.chmod(0o600)
    done("purge", DOMAIN, run)
    damaged = next((run / "warc").glob("c-0*.warc.gz"))
    damaged.write_bytes(damaged.read_bytes()[:-9])
    done("repair", run)
    done("finish", run, "--sample", 2, "--out", tmp_path / "copy")
    done("finish", run, "--wacz", tmp_path / "x.wacz")
    files = [*(run / "warc").glob("*.warc.gz*"), *(tmp_path / "copy").rglob("*.warc.gz"), tmp_path / "x.wacz"]
    assert damaged.with_name(f"{damaged.name}.cut") in files
    assert [file.stat().st_mode & 0o077 for file in files] == [0] * len(files)

"""Damage of a storage: whichever object, verify and merge refuse it in one line that names it."""

from __future__ import annotations

import argparse
import random
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from changed_json import OTHERS, places, with_other
from crawl_helpers import Web, crawl, error_of, scrapy
from scrapy.settings import Settings

from crawl4llm.base.errors import InputError
from crawl4llm.cluster import CommitsSoundness, journal, objects
from crawl4llm.cluster.history import History
from crawl4llm.cluster.storage import Storage, StorageError, pack, packed, sealed, unpacked
from crawl4llm.tools.archive.check import CHECK
from crawl4llm.tools.cluster import COMPACT, MERGE, STATUS, VERIFY
from crawl4llm.tools.frontier import SHOW

COMMON: dict[str, object] = {
    "CRAWL_MAX_PAGES": 60,
    "CRAWL_PARTITIONS": 3,
    "CRAWL_SEEDS": 20,
    "COMMIT_INTERVAL_PAGES": 15,
    "URL_POLICY": "parent_first",
    "WARC_MAX_BYTES": 100_000,
}
ORDERS = {"batches": 20, "commits": 0}


@pytest.fixture(scope="module")
def crawled(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes the storage of a crawl in one order or the other, each once."""

    @cache
    def storage_of(order: str) -> Path:
        folder = tmp_path_factory.mktemp(order)
        (folder / "storage").mkdir()
        given = {**COMMON, "CRAWL_BATCH_SIZE": ORDERS[order], "STORAGE": f"file://{folder / 'storage'}"}
        assert crawl(demo_web, folder / "worker", **given).returncode == 0
        return folder / "storage"

    return storage_of


@pytest.fixture(scope="module", params=[*ORDERS, "compacted"])
def ended(
    request: pytest.FixtureRequest, crawled: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A crawl that has ended, in its storage."""
    if request.param != "compacted":
        return crawled(request.param)
    storage = tmp_path_factory.mktemp("compacted") / "storage"
    shutil.copytree(crawled("commits"), storage)
    run(COMPACT, storage)
    return storage


@pytest.fixture
def copy(ended: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ended, tmp_path / "storage"))


def run(action: Any, storage: Path, **options: Any) -> list[Any]:
    return list(action.run({}, argparse.Namespace(arguments=[f"file://{storage}"], **options)))


def refused(storage: Path, out: Path, *, merges: bool = True) -> list[str]:
    """Return what verify says, and merge unless it is left out, which must refuse a storage."""
    said = []
    acts = [lambda: run(VERIFY, storage), lambda: run(MERGE, storage, out=str(out), index_only=False)]
    for act in acts[: 1 + merges]:
        with pytest.raises(InputError) as error:
            act()
        said.append(str(error.value))
        assert "\n" not in said[-1]
        assert not out.exists()
    return said


def read_all(storage: Path, out: Path) -> list[str]:
    """Return what the commands say that read a storage; they may go through."""
    acts: list[Callable[[], object]] = [
        lambda: run(VERIFY, storage),
        lambda: run(MERGE, storage, out=str(out), index_only=False),
        lambda: run(MERGE, storage, out=str(out.with_name(f"{out.name}-index")), index_only=True),
        lambda: run(STATUS, storage),
        lambda: run(COMPACT, storage),
    ]
    said = []
    for act in acts:
        try:
            act()
        except InputError as error:
            said.append(str(error))
    return said


def files(storage: Path) -> list[Path]:
    return sorted(path for path in storage.rglob("*") if path.is_file())


def test_a_sound_one_is_merged(ended: Path, tmp_path: Path) -> None:
    assert len(files(ended)) > 15
    assert run(VERIFY, ended)
    assert run(MERGE, ended, out=str(tmp_path / "merged"), index_only=False)


def test_a_flipped_bit_is_found_in_each_byte_of_each_object(ended: Path, tmp_path: Path) -> None:
    """By whoever reads that object alone: storage and archive have one way each to read."""
    storage, checked = Storage(f"file://{tmp_path}"), 0
    draw = random.Random(1)
    for path in files(ended):
        name = path.relative_to(ended).as_posix()
        if ".warc." in name or (name.startswith("warc/") and name.endswith(".cdxj")):
            continue  # of parts that have their own digests: see below
        data = path.read_bytes()
        assert storage.unsealed(name, data)
        changed = bytearray(data)
        for place in range(len(data)):
            changed[place] ^= 1 << draw.randrange(8)
            with pytest.raises(StorageError):
                storage.unsealed(name, bytes(changed))
            changed[place] = data[place]
            checked += 1
    assert checked > 5_000


@pytest.mark.slow
def test_a_damaged_object_is_refused(ended: Path, tmp_path: Path) -> None:
    """A flipped bit anywhere, a cut end, nothing at all, or another object's content: each is found, and named, of the
    first object of a kind, the last and one more. Verify is asked in each way, and merge in one of them by turns."""
    draw = random.Random(2)
    storage = Path(shutil.copytree(ended, tmp_path / "copy"))
    contents = {path.relative_to(ended).as_posix(): path.read_bytes() for path in files(ended)}
    kinds: dict[str, list[str]] = defaultdict(list)
    for name in contents:
        kinds[re.sub(r"[0-9a-f]{64}|\d+", "#", name)].append(name)
    turns = 0
    for number, name in enumerate(
        name for names in kinds.values() for name in sorted({names[0], names[-1], draw.choice(names)})
    ):
        data = contents[name]
        others = [one for other, one in contents.items() if Path(other).suffix == Path(name).suffix and one != data]
        flipped = bytearray(data)
        flipped[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        ways = [data[: draw.randrange(len(data))], draw.choice(others) if others else b"", bytes(flipped)]
        for way, changed in enumerate(ways):
            (storage / name).write_bytes(changed)
            said = refused(storage, tmp_path / "out", merges=way == number % len(ways))
            # Of compacted objects the part is named that is damaged.
            part = name.removeprefix("warc/").partition("-")[0]
            assert all(name in line or (name.startswith("warc/") and part in line) for line in said), (name, said)
            turns += 1
        (storage / name).write_bytes(data)
    assert turns > 3 * len(kinds) > 15
    assert run(VERIFY, storage)


@pytest.mark.parametrize("ended", ["commits"], indirect=True)
def test_commits_that_are_gone_are_missed(ended: Path, tmp_path: Path) -> None:
    """The newest ones by what the end says, or another partition; one before them by its number."""
    storage = Storage(f"file://{ended}")
    heads = {part: list(journal.commits(storage, part)) for part in range(3)}
    newest = {part: commits[-1].number for part, commits in heads.items()}
    part = max(range(3), key=lambda part: heads[part][-1].head.crawled)

    def without(name: str, numbers: range, *more: str) -> Path:
        copy = Path(shutil.copytree(ended, tmp_path / name))
        for number in numbers:
            (copy / journal.name(part, journal.LOG, number)).unlink()
            (copy / journal.name(part, journal.ALL, number)).unlink(missing_ok=True)
        for one in more:
            (copy / one).unlink()
        return copy

    pages = next(
        number for number in reversed(range(1, newest[part] + 1)) if heads[part][number - 1].head.pages is not None
    )
    gone = refused(without("gone", range(pages, newest[part] + 1)), tmp_path / "out")
    assert all("is not sound: end.json says that 60 pages were crawled, and" in line for line in gone) or all(
        "is missing, which others have read" in line for line in gone
    )
    no_end = refused(without("read", range(1, newest[part] + 1), "end.json"), tmp_path / "out")
    assert all("is missing, which others have read" in line for line in no_end)
    gap = refused(without("gap", range(1, 2)), tmp_path / "out")
    with pytest.raises(InputError) as error:
        run(COMPACT, tmp_path / "gap")
    gap.append(str(error.value))
    assert all(f"{journal.name(part, journal.LOG, 1)} is damaged: it is missing" in line for line in gap)
    quota = refused(without("quota", range(0), "quota/00000001"), tmp_path / "out")
    assert all("quota/00000001 is missing" in line for line in quota)


@pytest.mark.parametrize("ended", ["commits"], indirect=True)
def test_the_end_is_compared_with_what_is_there(copy: Path, tmp_path: Path) -> None:
    path = copy / "end.json"
    held = Storage(f"file://{copy}")
    end = held.read("end.json", held.get("end.json") or b"")
    path.write_bytes(sealed("end.json", pack({**end, "crawled": 200})))
    said = refused(copy, tmp_path / "out")
    assert all("end.json says that 200 pages were crawled, and 60 are there" in line for line in said)


@pytest.mark.parametrize("ended", ORDERS, indirect=True)
def test_seeds_that_are_gone_are_missed(copy: Path, tmp_path: Path) -> None:
    (copy / "seeds.txt").unlink()
    assert all("is not sound: seeds.txt is missing" in line for line in refused(copy, tmp_path / "out"))


@pytest.mark.parametrize("ended", ["batches"], indirect=True)
def test_iterations_that_are_gone_are_missed(ended: Path, tmp_path: Path) -> None:
    last = History(f"file://{ended}").last_iteration()
    assert last
    folders = {number: objects.folder(number) for number in range(last + 1)}
    whole: dict[str, list[Path | str]] = {
        "newest": [folders[last]],
        "newest exchange": [objects.name(last, objects.EXCHANGE, 1)],
        "one before": [folders[1]],
        "a plan": [folders[1] + objects.PLAN],
    }
    for name, gone in whole.items():
        copy = Path(shutil.copytree(ended, tmp_path / name))
        for one in gone:
            shutil.rmtree(copy / one) if (copy / one).is_dir() else (copy / one).unlink()
        said = refused(copy, tmp_path / "out")
        assert all("is not sound: end.json says that it ended after" in line for line in said)
        if name != "a plan":  # which is not needed
            with pytest.raises(InputError, match=r"i/0000000\d/ is damaged: objects are missing there"):
                run(COMPACT, copy)
        (copy / "end.json").unlink()
        if not name.startswith("newest"):
            assert all("is not whole" in line for line in refused(copy, tmp_path / "out"))


@pytest.mark.parametrize("ended", ["commits"], indirect=True)
def test_a_commit_that_comes_while_others_are_read_is_not_missed(copy: Path) -> None:
    (copy / "end.json").unlink()
    history = History(f"file://{copy}")
    all_of_them = list(history.commits())
    late, reader = next(
        ((part, commit.number), number)
        for part, commit in reversed(all_of_them)
        for number, (other, later) in enumerate(all_of_them)
        if later.head.marks[part] == commit.number == journal.newest(history.storage, part) and other != part
    )
    path = copy / journal.name(late[0], journal.LOG, late[1])
    data = path.read_bytes()
    path.unlink()
    sound = CommitsSoundness(History(f"file://{copy}"))
    for number, _ in enumerate(sound.commits()):
        if number == reader - 1:
            path.write_bytes(data)
    assert sound.equation


@pytest.mark.parametrize("ended", ["batches"], indirect=True)
def test_an_iteration_that_has_not_ended_is_the_last_that_is_read(copy: Path) -> None:
    """Those after it may have come since it was looked at."""
    (copy / "end.json").unlink()
    (copy / objects.name(1, objects.OFFER, 1)).unlink()
    assert [batch.number for batch in History(f"file://{copy}").batches()] == []


@pytest.mark.parametrize("ended", ["batches"], indirect=True)
def test_another_format_is_told_with_both_numbers(
    copy: Path, demo_web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (copy / "crawl.json").write_bytes(sealed("crawl.json", pack({"format": 99, "any": "thing"})))
    said = refused(copy, tmp_path / "out")
    assert all(f"has format 99; this version reads format {objects.FORMAT}; make it again: " in line for line in said)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for command in (["cluster", "status"], ["frontier"], ["archive", "check"], ["report"]):
        assert f"reads format {objects.FORMAT}" in error_of(scrapy(*command, f"file://{copy}"))
    worker = crawl(demo_web, tmp_path / "one", **COMMON, CRAWL_BATCH_SIZE=20, STORAGE=f"file://{copy}")
    assert f"reads format {objects.FORMAT}" in error_of(worker)


def mutated(storage: Storage, part: int, commit: journal.Commit, draw: random.Random) -> bytes:
    """Return a commit of which some part is another, with a checksum that holds."""
    head, sections = list(commit.head), dict(commit.sections)
    lines, changes, fingerprints = commit.lines, commit.changes, commit.fingerprints
    way = draw.choice(["head", "lines", "mail", "changes", "raw changes", "fingerprints", "bytes"])
    if way == "head":
        head = with_other(head, draw.choice(list(places(head))[1:]), draw.choice(OTHERS))
    elif way == "lines":
        content = storage.read("lines", lines)
        lines = pack(with_other(content, draw.choice(list(places(content))), draw.choice(OTHERS)))
    elif way == "mail" and sections:
        content = storage.read("mail", sections[min(sections)])
        sections[min(sections)] = pack(with_other(content, draw.choice(list(places(content))), draw.choice(OTHERS)))
    elif way == "changes":
        plain = bytearray(unpacked(changes))
        for _ in range(3):
            plain[draw.randrange(len(plain))] = draw.randrange(256)
        changes = packed(bytes(plain))
    elif way == "raw changes":
        changes = draw.randbytes(draw.choice([0, 3, 40]))
    elif way == "fingerprints":
        fingerprints = fingerprints[:-3]
    data = journal.encode(journal.Commit(0, journal.Head(*head), sections, lines, changes, fingerprints))
    if way == "bytes":
        data = data[: draw.randrange(len(data))]
    return sealed(journal.name(part, journal.LOG, commit.number), data)


@pytest.mark.slow
@pytest.mark.parametrize("ended", ["commits"], indirect=True)
def test_a_commit_that_says_something_else_is_read_or_refused_in_one_line(
    ended: Path, demo_web: Web, tmp_path: Path
) -> None:
    """Also where its checksum holds, as somebody wrote it so."""
    draw = random.Random(3)
    storage = Storage(f"file://{ended}")
    commits = [(part, commit) for part in range(3) for commit in journal.commits(storage, part)]
    said: list[str] = []
    for turn in range(40):
        part, commit = draw.choice(commits)
        copy = Path(shutil.copytree(ended, tmp_path / str(turn)))
        name = journal.name(part, journal.LOG, commit.number)
        (copy / name).write_bytes(mutated(storage, part, commit, draw))
        said += read_all(copy, tmp_path / f"out{turn}")
        if turn % 20 == 0:
            (copy / "end.json").unlink()
            more = {**COMMON, "CRAWL_BATCH_SIZE": 0, "STORAGE": f"file://{copy}"}
            worker = crawl(demo_web, tmp_path / f"worker{turn}", **more)
            assert "Traceback" not in worker.stderr
            assert "holds another crawl" not in worker.stderr
    assert len(said) > 40
    assert not any("\n" in line for line in said)
    assert [line for line in said if not line.startswith("STORAGE")] == []


@pytest.mark.parametrize("ended", ["commits"], indirect=True)
def test_whoever_reads_a_damaged_storage_says_so_in_one_line(
    copy: Path, demo_web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands that take it for a folder, and a worker that goes on with it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    url, number = f"file://{copy}", journal.newest(Storage(f"file://{copy}"), 0)
    name = journal.name(0, journal.LOG, number)
    data = bytearray((copy / name).read_bytes())
    data[len(data) // 2] ^= 4
    (copy / name).write_bytes(data)
    for command in (
        ["cluster", "status", url],
        ["frontier", url],
        ["archive", "check", url],
        ["report", url],
        ["export", url, "--out", str(tmp_path / "set")],
        ["explain", "doc", "--run", url],
    ):
        assert f"{name} is damaged: it has another checksum" in error_of(scrapy(*command))
    (copy / "end.json").unlink()
    worker = crawl(demo_web, tmp_path / "one", **COMMON, CRAWL_BATCH_SIZE=0, STORAGE=url)
    assert f"{name} is damaged: it has another checksum" in error_of(worker)


@pytest.fixture
def endpoints(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "some")
    yield monkeypatch


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_ENDPOINT_URL", "127.0.0.1:9000"),
        ("AWS_ENDPOINT_URL_S3", "localhost:9000"),
        ("AWS_ENDPOINT", "minio"),
        ("AWS_ENDPOINT_URL", ""),
        ("AWS_ENDPOINT_URL", "http://"),
        ("AWS_ENDPOINT_URL", "ftp://host"),
        ("AWS_ENDPOINT_URL", "http://host:99999"),
        ("AWS_ENDPOINT_URL", "http://[::1"),
        ("AWS_ENDPOINT_URL", "http://[fe80::1%25eth0]"),
        ("AWS_ENDPOINT_URL", "http://ho st"),
        ("AWS_ENDPOINT_URL", "http://ex%ample"),
        ("AWS_ENDPOINT_URL", "http://256.256.256.256"),
        ("AWS_ENDPOINT_URL", "http://xn--"),
        ("AWS_REGION", "eu\r"),
        ("AWS_SESSION_TOKEN", "two\nlines"),
    ],
)
def test_an_endpoint_without_a_scheme_is_one_line(
    name: str, value: str, endpoints: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """And so is whatever else the library for buckets would panic at, with 142 lines."""
    endpoints.setenv(name, value)
    with pytest.raises(InputError, match=name) as error:
        Storage("s3://bucket/folder").get("crawl.json")
    assert "\n" not in str(error.value)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "url", ["s3://", "s3://b:99999/f", "s3://[/f", "s3://b/two\nlines", "s3://me@b/f", "file://host/f", "file:///a?b"]
)
def test_a_storage_that_is_no_url_is_one_line(url: str) -> None:
    for action in (VERIFY, CHECK, SHOW):
        with pytest.raises(InputError, match="must be like s3://BUCKET/FOLDER") as error:
            list(action.run(Settings(), argparse.Namespace(arguments=[url], hosts=1, best=1, jobs=1)))
        assert "\n" not in str(error.value)

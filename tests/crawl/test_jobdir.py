"""A JOBDIR that is damaged, half there or not to be trusted is refused in one line, and nothing is lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest
from crawl_helpers import PROJECT

from crawl4llm.base.errors import InputError, NothingToDo
from crawl4llm.base.run_folder import read_json
from crawl4llm.crawl.job import Job
from crawl4llm.crawl.jobdir import JobDir
from crawl4llm.crawl.store_check import check_store
from crawl4llm.frontier import Entry
from crawl4llm.frontier.opening import open_frontier
from crawl4llm.frontier.store import Store
from crawl4llm.options import Options

CRAWL = str(uuid5(NAMESPACE_URL, "a crawl"))
IDENTITY = {"corpus_digest": "sha256:1", "policy_settings": {}}
PAGES = 7
LOCK_FILES = {"lock", "store.mdb-lock"}


def begin(folder: Path, *, pages: int | None = PAGES, leased: int = 0) -> Path:
    """A crawl with a JOBDIR, as it is when so many pages are committed; None: killed before its first commit."""
    job = Job(folder / "job", Options(output_dir=str(folder / "run"), commit_fsync=False))
    job.settle(CRAWL, IDENTITY)
    job.close()
    if pages is not None:
        with closing(Store(folder / "job/store.mdb", fsync=False)) as store:
            frontier = open_frontier(store)
            frontier.push(Entry(str(number), f"http://example.org/{number}", 0.5, 1, "p") for number in range(1000))
            frontier.lease(leased)
            frontier.save()
            state = {"crawl": {"counts": {"pages/crawled": pages}}}
            store.put("state", b"crawl", json.dumps(state).encode())
            store.commit()
    return folder / "job"


def settle(folder: Path, **options: Any) -> Path:
    """Take the crawl up, or begin it, as a crawl does; its output."""
    job = Job(folder / "job", Options(**{"output_dir": str(folder / "run"), **options}))
    with closing(job):
        job.settle(CRAWL, IDENTITY)
        return job.output


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder and those below, but for what locks."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in LOCK_FILES
    }


# -- parts of a JOBDIR ------------------------------------------------------------------------------------------------


def lose(path: Path) -> None:
    path.unlink()


def cut_to(size: int) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, size)


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def keep(path: Path) -> None:
    """It is whole."""


CUT = {name: cut_to(size) for name, size in (("4096", 4096), ("8191", 8191))}
DAMAGE = {"whole": keep, "missing": lose, "empty": cut_to(0), "half": halve}


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "no locks"])
@pytest.mark.parametrize("stored", [*DAMAGE, *CUT])
@pytest.mark.parametrize("described", DAMAGE)
def test_parts_of_a_jobdir(tmp_path: Path, described: str, stored: str, locks: bool) -> None:
    job = begin(tmp_path)
    DAMAGE[described](job / "job.json")
    {**DAMAGE, **CUT}[stored](job / "store.mdb")
    if not locks:
        for name in LOCK_FILES:
            (job / name).unlink()
    before = contents(tmp_path)
    nothing_left = described == "missing" and stored in {"missing", "empty"}
    if described == stored == "whole":
        assert settle(tmp_path) == tmp_path / "run"
    elif nothing_left:
        assert settle(tmp_path, output_dir=str(tmp_path / "other")) == tmp_path / "other"
    else:
        with pytest.raises(InputError) as refused:
            settle(tmp_path)
        named = job / ("store.mdb" if described == "whole" else "job.json")
        assert str(named) in str(refused.value)
        assert "restore" in str(refused.value)
        assert "\n" not in str(refused.value)
        with pytest.raises(InputError, match=r"job\.json|store\.mdb"):  # scrapy frontier's look
            check_store(JobDir(job, lock=False).store_path, CRAWL)
    if not nothing_left:
        assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["requests.seen", "notes.txt", "job.json.bak", "store.mdb.bak", "locks.txt"])
def test_a_folder_of_something_else_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / name).touch()
    with pytest.raises(InputError, match=re.escape(name)):
        settle(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["job", name]


@pytest.mark.parametrize("left", ["visited.bloom", "visited.bloom.0", "store.mdb.compact"])
def test_what_only_a_crawl_leaves_is_not_thrown_away(tmp_path: Path, left: str) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / left).write_bytes(b"something")
    with pytest.raises(InputError, match="belongs to a crawl"):
        settle(tmp_path)
    assert contents(tmp_path) == {f"job/{left}": b"something"}


@pytest.mark.parametrize("committed", [True, False])
def test_a_small_store_of_zeros_is_no_beginning(tmp_path: Path, committed: bool) -> None:
    """What a copy that was broken off may leave of it, where its size was set first."""
    job = begin(tmp_path, pages=PAGES if committed else None)
    (job / "job.json").unlink()
    size = (job / "store.mdb").stat().st_size
    (job / "store.mdb").write_bytes(bytes(size))
    with pytest.raises(InputError, match=r"job\.json is missing, and .*store\.mdb"):
        settle(tmp_path)
    assert (job / "store.mdb").stat().st_size == size


def test_a_start_that_is_refused_begins_nothing(tmp_path: Path) -> None:
    """The JOBDIR then takes a crawl with other settings, and the output is free."""
    job = Job(tmp_path / "job", Options(output_dir=str(tmp_path / "run"), commit_fsync=False))
    job.settle(CRAWL, IDENTITY)
    job.close_start(InputError, InputError("refused"), None)
    assert not (tmp_path / "run").exists()
    assert [path.name for path in (tmp_path / "job").iterdir()] == ["lock"]
    other = Job(tmp_path / "job", Options(output_dir=str(tmp_path / "run"), crawl_seed=7, commit_fsync=False))
    other.settle(CRAWL, {**IDENTITY, "corpus_digest": "sha256:2"})
    other.close_start(None, None, None)
    assert (tmp_path / "job/job.json").exists()
    taken_up = Job(tmp_path / "job", Options(output_dir=str(tmp_path / "run"), crawl_seed=7, commit_fsync=False))
    taken_up.settle(CRAWL, {**IDENTITY, "corpus_digest": "sha256:2"})
    taken_up.close_start(InputError, InputError("refused"), None)
    assert (tmp_path / "run/settings.json").exists()
    assert (tmp_path / "job/job.json").exists()


@pytest.mark.parametrize("step", ["begin", "put", "commit"])
def test_killed_before_it_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """The same command begins it, with the same OUTPUT_DIR."""

    def kill(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(JobDir if step == "begin" else Store, step, kill)
        with pytest.raises(KeyboardInterrupt):
            settle(tmp_path)
    assert not (tmp_path / "job/job.json").exists()
    assert settle(tmp_path) == tmp_path / "run"
    assert settle(tmp_path) == tmp_path / "run"


# -- odd values -------------------------------------------------------------------------------------------------------


ODD = [
    *(("crawl_id", value) for value in (None, 5, ["a"])),
    *(("output", value) for value in (None, 5, [], "a/relative/path", "")),
    *(("digests", value) for value in (None, [], "sha256:1", {"unknown": "1"}, {"corpus_digest": 5})),
    *(("settings", value) for value in (None, [], 1, {"CORPUS": [[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]})),
    *(("format", value) for value in (None, "1", True, 1.0, [1])),
]


@pytest.mark.parametrize(("name", "value"), ODD)
def test_odd_values_are_damage(tmp_path: Path, name: str, value: object) -> None:
    path = begin(tmp_path) / "job.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    before = contents(tmp_path)
    with pytest.raises(InputError, match=r"job\.json is damaged"):
        settle(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "text",
    ["null", "[]", "5", '"job"', "[" * 100_000, '{"format":' * 100_000, "9" * 5000, "\ufeff{}", "{}", " " * (1 << 21)],
    ids=range(10),
)
def test_what_is_no_job_description(tmp_path: Path, text: str) -> None:
    path = begin(tmp_path) / "job.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"job\.json is damaged"):
        settle(tmp_path)


def test_an_id_that_is_none(tmp_path: Path) -> None:
    job = begin(tmp_path)
    described = json.loads((job / "job.json").read_text())
    (job / "job.json").write_text(json.dumps({**described, "crawl_id": "../x"}))
    with closing(Store(job / "store.mdb")) as store:
        store.put("state", b"id", b"../x")
        store.commit()
    with pytest.raises(InputError, match=r"job\.json is damaged: its crawl_id"):
        settle(tmp_path)


def test_foreign_text_does_not_steer_a_terminal(tmp_path: Path) -> None:
    path = begin(tmp_path) / "job.json"
    odd = {"output": "/no/\x1b[2J", "settings": {"CRAWL_BATCH_SIZE": "\x1b[2J"}}
    for change in ({"settings": odd["settings"]}, {"output": odd["output"]}, {"format": 9, "version": "\x1b[2J"}):
        path.write_text(json.dumps({**json.loads(path.read_text()), "settings": {}, **change}))
        with pytest.raises(InputError) as refused:
            settle(tmp_path, output_dir=None)
        assert "\x1b" not in str(refused.value)


# -- what leads elsewhere ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pages", [PAGES, None], ids=["begun", "not begun"])
@pytest.mark.parametrize(
    "bears", [None, "{}", '{"crawl_id": "another"}', "[" * 100], ids=["none", "no", "other", "bad"]
)
def test_an_output_without_the_id_of_the_crawl_is_left_alone(tmp_path: Path, pages: int | None, bears: str) -> None:
    """``job.json`` of a JOBDIR that one received may name any folder."""
    job = begin(tmp_path, pages=pages)
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "crawl.jsonl").write_text("precious\n")
    if bears:
        (victim / "settings.json").write_text(bears)
    described = json.loads((job / "job.json").read_text())
    (job / "job.json").write_text(json.dumps({**described, "output": str(victim)}))
    before = contents(tmp_path)
    for given in (None, str(victim)):
        with pytest.raises(InputError, match=r"does not hold the crawl of JOBDIR .* its new place: -s OUTPUT_DIR="):
            settle(tmp_path, output_dir=given)
    (job / "job.json").write_text(json.dumps({**described, "output": str(tmp_path / "absent")}))
    with pytest.raises(InputError, match="does not hold the crawl"):
        settle(tmp_path, output_dir=None)
    assert not (tmp_path / "absent").exists()
    (job / "job.json").write_text(json.dumps({**described, "output": str(victim)}))
    assert contents(tmp_path) == before
    assert settle(tmp_path) == tmp_path / "run", "the place that is given, which bears the id"


@pytest.mark.parametrize("name", ["lock", "store.mdb", "job.json", "visited.bloom", "job.json.open"])
def test_files_that_are_links_are_not_followed(tmp_path: Path, name: str) -> None:
    job = begin(tmp_path)
    victim = tmp_path / "victim"
    if (job / name).exists():
        shutil.move(job / name, victim)
    else:
        victim.write_text("precious")
    before = victim.read_bytes()
    (job / name).symlink_to(victim)
    with pytest.raises(InputError, match=f"{name} is a link"):
        settle(tmp_path)
    assert victim.read_bytes() == before


# -- fewer pages ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("leased", "said"), [(0, "has 7 pages; CRAWL_M"), (3, "has 7 pages and is at 3 more, which")])
def test_fewer_pages_than_there_are(tmp_path: Path, leased: int, said: str) -> None:
    """Those of a batch that is under way are all taken, so they count."""
    begin(tmp_path, leased=leased)
    before = contents(tmp_path)
    with pytest.raises(NothingToDo, match=rf"{said}.* nothing was changed"):
        settle(tmp_path, crawl_max_pages=PAGES + leased - 1)
    settle(tmp_path, crawl_max_pages=PAGES + leased)
    assert contents(tmp_path) == before


# -- who may read it --------------------------------------------------------------------------------------------------


def test_it_is_for_its_owner_only(tmp_path: Path) -> None:
    job = begin(tmp_path)
    with closing(Store(job / "store.mdb")) as store:
        store.copy_to(job / "store.mdb.compact")
    for name in ("job.json", "store.mdb", "store.mdb-lock", "store.mdb.compact"):
        assert not (job / name).stat().st_mode & 0o077, name


# -- limits on memory and disk ----------------------------------------------------------------------------------------


limited = pytest.mark.skipif(sys.platform != "linux", reason="only Linux heeds a limit on address space")
GROWING = """
import resource, sys
from pathlib import Path
from crawl4llm.frontier.store import Store, StoreError

resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), resource.RLIM_INFINITY))
store = Store(Path(sys.argv[1]))
try:
    for number in range(int(sys.argv[3])):
        for part in range(6):
            store.put("frontier", b"%d-%d" % (number, part), bytes(5_000_000))
        store.commit()
        print(number, flush=True)
        sys.stdin.readline()
except StoreError as error:
    print(error)
"""


def growing(path: Path, limit: int, commits: int) -> subprocess.Popen[str]:
    """A process that commits 30 MB each time it is told to, with so much address space."""
    pipe = subprocess.PIPE
    args = [sys.executable, "-c", GROWING, str(path), str(limit), str(commits)]
    return subprocess.Popen(args, stdin=pipe, stdout=pipe, text=True, bufsize=1, cwd=PROJECT)


@limited
def test_the_map_grows_where_address_space_is_short(tmp_path: Path) -> None:
    """And who reads meanwhile, also from before it has grown, sees what was committed by then."""
    path = tmp_path / "store.mdb"
    with growing(path, 1 << 30, 6) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "0\n"
        with closing(Store(path, readonly=True)) as early:
            for number in range(1, 6):
                process.stdin.write("\n")
                assert process.stdout.readline() == f"{number}\n"
            assert early.count("frontier") == 6
        with closing(Store(path, readonly=True)) as late:
            assert late.count("frontier") == 36
            assert path.stat().st_size > 180_000_000
        process.stdin.write("\n")
    assert process.returncode == 0


@limited
def test_a_reader_follows_a_map_that_grows_while_it_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.mdb"
    with growing(path, 1 << 30, 2) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "0\n"
        writing = iter([process])

        def check_size(_: Store) -> None:
            """Called between the opening of the file and the first transaction."""
            for one in writing:
                assert one.stdin
                assert one.stdout
                one.stdin.write("\n")
                assert one.stdout.readline() == "1\n"

        monkeypatch.setattr("crawl4llm.frontier.store._MAP_SIZE", 1 << 62)  # more than any process may have
        monkeypatch.setattr(Store, "check_size", check_size)
        with closing(Store(path, readonly=True)) as late:
            assert late.count("frontier") == 12
        process.stdin.write("\n")


@limited
def test_too_little_address_space_is_told_in_one_line(tmp_path: Path) -> None:
    process = growing(tmp_path / "store.mdb", 300 << 20, 20)
    out, _ = process.communicate("\n" * 20)
    *committed, said = out.splitlines()
    assert said.startswith(f"{tmp_path / 'store.mdb'} has no more room in the address space")
    assert "now 300 MB" in said
    assert "ulimit -v unlimited" in said
    with closing(Store(tmp_path / "store.mdb", readonly=True)) as store:
        assert store.count("frontier") == 6 * len(committed) > 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A folder on a file system of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.mark.parametrize("pages_free", [*range(0, 12, 2), 25])
def test_a_full_disk_is_named_wherever_it_is_met(small_disk: Path, pages_free: int) -> None:
    """Each error says what file had no room; with room, the same command does it."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes((256 - pages_free) * 4096))
    with pytest.raises(InputError, match=f"{small_disk}.*No space left on device"):
        begin(small_disk)
    ballast.unlink()
    assert settle(small_disk) == small_disk / "run"
    check_store(small_disk / "job/store.mdb", CRAWL)
    assert read_json(small_disk / "run/settings.json")["crawl_id"] == CRAWL

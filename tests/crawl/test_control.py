"""control.json and the folder inject/: what they may hold, and what a crawl does by them."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from crawl_helpers import begin_python
from driven_crawl import Driven, JobCrawl, scored

from crawl4llm.base.errors import InputError
from crawl4llm.crawl.control import (
    Control,
    InjectFolder,
    blocked_around,
    publish_blocked,
    read_blocked,
    read_control,
    set_blocked,
)
from crawl4llm.crawl.fetched_web import LiveCorpus
from crawl4llm.crawl.jobdir import JobDir
from crawl4llm.crawl.reorder_buffer import Injected
from crawl4llm.crawl.seeds import Seeds
from crawl4llm.frontier.opening import memory_frontier

A, B = "http://www.a.example/", "http://b.example/"
WEB = scored({f"{A}9": [], f"{A}8": [], f"{B}7": [], f"{B}5": []})


def test_all_that_it_may_say(tmp_path: Path) -> None:
    assert read_control(tmp_path) == Control()
    said = {"delay": 0, "delays": {"Bücher.example": 30, "127.0.0.1": 0.5}, "max_pages": 7, "concurrent_requests": 1}
    (tmp_path / "control.json").write_text(json.dumps({**said, "blocked": ["www.b.example.", "A.example"]}))
    control = read_control(tmp_path)
    assert control.blocked == ("a.example", "www.b.example")
    assert [control.delay_of(owner) for owner in ("xn--bcher-kva.example", "127.0.0.1", "c.example")] == [30, 0.5, 0]
    assert (control.max_pages, control.concurrent_requests) == (7, 1)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "is not JSON"),
        ("[]", "is not a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"delays": {}', "is not JSON"),
        ('{"blokced": []}', "'blokced' is not known"),
        ('{"\\u001b[2J": []}', "is not known"),
        ('{"delay": -1}', "delay must be a number of seconds"),
        ('{"delay": NaN}', "delay must be"),
        ('{"delay": Infinity}', "delay must be"),
        ('{"delay": 1%s}' % ("0" * 400), "delay must be"),
        ('{"delay": true}', "delay must be"),
        ('{"delays": [1]}', "delays must be an object"),
        ('{"delays": {"www.a.example": 1}}', "give that of its owner, 'a.example'"),
        ('{"delays": {"a.example": "1"}}', "delays of 'a.example' must be"),
        ('{"max_pages": 0}', "max_pages must be a positive integer"),
        ('{"max_pages": 1.5}', "max_pages must be"),
        ('{"concurrent_requests": null}', "concurrent_requests must be"),
        ('{"blocked": "a.example"}', "blocked must be a list"),
        ('{"blocked": [3]}', "blocked has 3, which is not a domain"),
        ('{"blocked": ["a b"]}', "blocked has 'a b'"),
        (" " * (1 << 20) + "{}", "more than 1,048,576 bytes"),
    ],
    ids=range(21),
)
def test_what_is_wrong_is_named(tmp_path: Path, content: str, fault: str) -> None:
    (tmp_path / "control.json").write_text(content)
    for change in (lambda: read_control(tmp_path), lambda: set_blocked(tmp_path, "c.example", blocked=True)):
        with pytest.raises(InputError) as raised:
            change()
        assert fault in str(raised.value)
        assert str(tmp_path / "control.json") in str(raised.value)
        assert "\x1b" not in str(raised.value)
    assert (tmp_path / "control.json").read_text() == content


def test_several_processes_may_block_at_once(tmp_path: Path) -> None:
    (tmp_path / "control.json").write_text('{"delay": 7}')
    code = (
        "import sys; from pathlib import Path; from crawl4llm.crawl.control import set_blocked\n"
        f"for n in range(20): set_blocked(Path({str(tmp_path)!r}), f'{{sys.argv[1]}}{{n}}.example', blocked=True)"
    )
    processes = [begin_python("-c", code, name, silent=["out", "err"]) for name in "xy"]
    assert [process.wait(timeout=600) for process in processes] == [0, 0]
    control = read_control(tmp_path)
    assert len(control.blocked) == 40
    assert control.delay == 7
    assert (tmp_path / "control.json").stat().st_mode & 0o077 == 0
    assert set_blocked(tmp_path, "x0.example", blocked=False)[1]
    assert not set_blocked(tmp_path, "x0.example", blocked=False)[1]
    assert read_blocked(tmp_path) == ()
    publish_blocked(tmp_path, tmp_path)
    assert read_blocked(tmp_path) == read_control(tmp_path).blocked


def test_a_link_in_an_output_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "elsewhere").write_text('{"domains": []}')
    (tmp_path / "run/blocked.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="leads out of"):
        read_blocked(tmp_path / "run")


def test_blocked_domains_are_found_from_the_files_of_an_archive(tmp_path: Path) -> None:
    """Beside the archive of a run; in a copy of one, maybe above folders of files."""
    folders = [tmp_path / name for name in ("run/warc", "trec/T_00/0000wb", "sample", "none/warc")]
    for folder in folders:
        folder.mkdir(parents=True)
    for name in ("run", "trec", "sample"):
        (tmp_path / name / "blocked.json").write_text(f'{{"blocked": ["{name}.example"]}}')
    assert blocked_around(folders) == ("run.example", "sample.example", "trec.example")
    assert blocked_around([folders[1]]) == ("trec.example",)
    assert blocked_around([folders[3]]) == ()


def test_they_may_be_there_before_the_crawl_and_stay(tmp_path: Path) -> None:
    (tmp_path / "control.json").write_text("{}")
    (tmp_path / "inject").mkdir()
    (tmp_path / "inject/a.txt").write_text("x")
    JobDir(tmp_path).close()
    assert (tmp_path / "control.json").exists()
    assert (tmp_path / "inject/a.txt").exists()


@pytest.mark.parametrize("name", ["inject", "requests", "control.json"])
def test_links_in_a_jobdir_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a link"):
        JobDir(tmp_path / "job")


def test_the_folder_gives_what_is_whole(tmp_path: Path) -> None:
    folder = InjectFolder(tmp_path)
    assert folder.waiting() == []
    folder.make()
    for name in ("a.txt", ".b.txt", "c.part", "d.txt", "large.txt"):
        (tmp_path / "inject" / name).write_text("http://a.example/\nnonsense\n" if name == "a.txt" else "# nothing\n")
        os.utime(tmp_path / "inject" / name, (0, 0))
    os.truncate(tmp_path / "inject/large.txt", 20 << 20)
    os.utime(tmp_path / "inject/large.txt", (0, 0))
    (tmp_path / "inject/young.txt").write_text("http://a.example/")
    (tmp_path / "inject/link.txt").symlink_to(tmp_path / "inject/a.txt")
    one, useless, large = (path for path, _ in folder.waiting())
    assert folder.read(one, LiveCorpus()).keys == ["http://a.example/"]
    for path, fault in ((useless, "no usable seed"), (large, "more than 16,777,216 bytes")):
        with pytest.raises(InputError, match=fault):
            folder.read(path, LiveCorpus())
    folder.finish(one)
    one.write_text("again")
    folder.finish(one)
    assert sorted(path.name for path in (tmp_path / "inject/done").iterdir()) == ["a.1.txt", "a.txt"]


def test_injected_seeds_are_reported_when_they_are_committed(tmp_path: Path) -> None:
    """A process that was killed before that takes them again; one killed after it finds all of them visited."""
    told: list[str] = []

    def inject(crawl: JobCrawl) -> None:
        crawl.crawl.inject(Injected(Seeds([f"{A}9", f"{A}8"]), lambda: told.append("done")))

    first = JobCrawl(WEB, tmp_path, crawl_batch_size=0)
    first.start(f"{B}5")
    inject(first)
    assert first.crawl.finished is None
    assert not told
    first.close()  # before the seeds were taken
    second = JobCrawl(WEB, tmp_path, crawl_batch_size=0)
    assert len(second.crawl.frontier) == 1
    inject(second)
    second.advance()
    assert told == ["done"]
    second.close()
    third = JobCrawl(WEB, tmp_path, crawl_batch_size=0)
    assert len(third.crawl.frontier) == 3
    inject(third)
    asyncio.run(third._run([], None))
    assert told == ["done", "done"]
    assert sorted(third.ids) == [f"{B}5", f"{A}8", f"{A}9"]
    third.close()


def test_limits_and_blocks_hold_from_now_on(tmp_path: Path) -> None:
    frontier = memory_frontier(by_owners=True)
    frontier.owners.tick(0)
    driven = Driven(WEB, tmp_path, by_owners=frontier, crawl_batch_size=0, leases=4)
    driven.start(f"{A}9", f"{A}8", f"{B}7", f"{B}5")
    driven.crawl.limit(max_pages=1000, concurrent_leases=1)
    (lease,) = driven.dequeue()
    driven.crawl.limit(max_pages=1000, concurrent_leases=2)
    (other,) = driven.dequeue()
    driven.crawl.block(["a.example"])
    while driven.crawl.drop_blocked():
        pass
    assert [(line["id"], line["reason"]) for line in driven.failures] == [(f"{A}8", "opt_out")]
    assert lease.entry.key == f"{A}9", "what is on the wire may end"
    driven.fetch(lease)
    driven.fetch(other)
    driven.advance()
    assert driven.crawl.balance.problem is None
    driven.crawl.limit(max_pages=2, concurrent_leases=2)
    assert driven.crawl.finished == "max_pages"
    driven.close()

"""Copies of robots.txt: how long they hold, how failures are remembered, and what a damaged or hostile file does."""

from __future__ import annotations

import gc
import logging
import math
import os
import signal
import sqlite3
import stat
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import begin_python

from crawl4llm.base.urls import site_of
from crawl4llm.live.robots import RobotsUnknown
from crawl4llm.live.robots_copies import FRESH, HOLDS, WAITS, Copies, Known
from crawl4llm.live.robots_store import RobotsStore
from crawl4llm.optouts.robots_rules import LIMIT

SITE = "http://example.com"
PRIVATE = f"{SITE}/private/a"
FILE = b"user-agent: *\ndisallow: /private/\n"
HOUR, DAY = 3600.0, 86400.0


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "store", "restarted"])
def copies(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> Iterator[Copies]:
    """The same is known without a store, with one, and where each look is that of a new process."""
    if request.param == "memory":
        yield Copies("foo", clock=clock)
        return
    most = 0 if request.param == "restarted" else 1 << 20
    found = Copies("foo", RobotsStore(tmp_path), clock, most)
    if not most:
        whole = found.of

        def anew(site: str) -> Known:
            found.of = whole  # type: ignore[method-assign]
            found.answered("http://elsewhere.example", None)  # the cache has room for one
            known = whole(site)
            found.of = anew  # type: ignore[method-assign]
            return known

        found.of = anew  # type: ignore[method-assign]
    yield found
    found.store.close()


def may(copies: Copies) -> bool | None:
    """Whether the private page may be fetched; None while that is not known."""
    rules = copies.of(SITE).rules_at(copies.now())
    return None if rules is None else rules.allows(PRIVATE)


def must_ask(copies: Copies) -> bool:
    return copies.of(SITE).must_ask(copies.now())


def test_an_answer_holds_for_less_than_a_day(copies: Copies, clock: Clock) -> None:
    assert may(copies) is None
    assert must_ask(copies)
    copies.answered(SITE, FILE)
    for age in (0, 1, FRESH - 1):
        clock.now += age - (clock.now - 1_800_000_000)
        assert may(copies) is False
        assert not must_ask(copies)
    clock.now += 1
    assert must_ask(copies)
    assert FRESH + HOUR <= DAY
    copies.answered(SITE, None)
    assert may(copies) is True
    assert not must_ask(copies)


def test_failures_are_remembered_for_longer_and_longer(copies: Copies, clock: Clock) -> None:
    for wait in (60, 600, 3600, 3600):
        assert must_ask(copies)
        copies.failed(SITE, "dns")
        assert may(copies) is None
        assert copies.of(SITE).reason == "dns"
        assert copies.of(SITE).waits_until(clock.now) == clock.now + wait
        clock.now += wait - 0.5
        assert not must_ask(copies)
        clock.now += 0.5
    copies.answered(SITE, FILE)
    assert may(copies) is False
    clock.now += DAY
    assert must_ask(copies)
    copies.failed(SITE, "dns")
    assert copies.of(SITE).waits_until(clock.now) == clock.now + WAITS[0], "an answer came in between"


def test_a_file_holds_for_thirty_days_while_there_is_no_answer(copies: Copies, clock: Clock) -> None:
    copies.answered(SITE, FILE)
    asked = clock.now
    for days in (1, 7, 29.99):
        clock.now = asked + days * DAY
        assert must_ask(copies)
        copies.failed(SITE, "robots_unknown")
        assert may(copies) is False
        assert not must_ask(copies)
    clock.now = asked + HOLDS
    assert may(copies) is None, "counted from when it came"


def test_that_there_is_no_file_does_not_outlast_a_day(copies: Copies, clock: Clock) -> None:
    copies.answered(SITE, None)
    clock.now += DAY
    copies.failed(SITE, "robots_unknown")
    assert may(copies) is None


def test_a_server_may_ask_for_another_wait(copies: Copies, clock: Clock) -> None:
    for asked, wait in ((30.0, 30.0), (7200.0, 7200.0), (1e9, DAY)):
        copies.failed(SITE, "robots_unknown", asked)
        assert copies.of(SITE).waits_until(clock.now) == clock.now + wait


def test_short_waits_of_a_server_cost_it_no_documents(clock: Clock) -> None:
    """It is asked when it said, and has failed as often as if it were asked after 60 and 600 seconds."""
    copies = Copies("foo", clock=clock)
    for number in range(140):
        assert must_ask(copies)
        copies.failed(SITE, "robots_unknown", 5.0)
        assert copies.of(SITE).failures == 1 + (number >= 12) + (number >= 132)
        clock.now += 5.0


def test_a_clock_that_jumps(copies: Copies, clock: Clock) -> None:
    copies.answered(SITE, FILE)
    clock.now -= 10 * DAY
    assert must_ask(copies), "an answer from the future"
    copies.failed(SITE, "robots_unknown")
    assert may(copies) is None
    clock.now -= 10 * DAY
    assert copies.of(SITE).waits_until(clock.now) == clock.now + 60, "no longer than the whole wait"
    clock.now += 59
    assert not must_ask(copies)
    clock.now += 2
    assert must_ask(copies)


def test_sites_are_schemes_with_authorities() -> None:
    sites = {
        "http://Example.com/a": "http://example.com",
        "http://example.com:80?b": "http://example.com",
        "https://example.com:443/": "https://example.com",
        "https://example.com:80/": "https://example.com:80",
        "http://me:x@example.com:8080/a@b": "http://example.com:8080",
        "http://[::1]:8080/": "http://[::1]:8080",
        "http://bücher.example/": "http://xn--bcher-kva.example",
    }
    assert {url: site_of(url) for url in sites} == sites


def test_the_cache_is_bounded() -> None:
    copies = Copies("foo", most=100_000)
    rules = b"user-agent: *\n" + b"".join(b"disallow: /%d\n" % number for number in range(10))
    for number in range(1000):
        copies.answered(f"http://{number}.example", rules)
        assert copies.known.size <= 100_000
        assert copies.of("http://0.example").rules is not None, "what is asked about stays"
    assert copies.of("http://1.example").rules is None
    held = sum(copies.of(f"http://{number}.example").rules is not None for number in range(990, 1000))
    assert held == 0 or copies.known.size <= 100_000

    large = b"user-agent: *\n" + b"".join(b"disallow: /%d\n" % number for number in range(1000))
    copies.answered("http://large.example", large)
    assert not copies.of("http://large.example").rules_at(copies.now()).allows("http://large.example/1")  # type: ignore[union-attr]


def test_memory_of_the_cache_is_not_underestimated() -> None:
    copies = Copies("foo", most=1 << 30)
    gc.collect()
    tracemalloc.start()
    for number in range(5000):
        copies.answered(f"http://{number}.example", None)
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert copies.known.size / 4 < taken < copies.known.size


# -- on disk ----------------------------------------------------------------------------------------------------------


def stored(folder: Path, crawler: str = "foo", site: str = SITE) -> bool | None:
    """Whether the private page may be fetched, by a new process."""
    copies = Copies(crawler, RobotsStore(folder))
    rules = copies.of(site).rules_at(copies.now())
    copies.store.close()
    return None if rules is None else rules.allows(f"{site}/private/a")


def keep(folder: Path, body: bytes | None = FILE) -> None:
    copies = Copies("foo", RobotsStore(folder))
    copies.answered(SITE, body)
    copies.store.close()


@pytest.mark.parametrize("commits", [True, False])
def test_an_answer_may_last_with_a_commit(tmp_path: Path, commits: bool) -> None:
    """Before that the next process asks again, for its record may be lost; what it asked for holds meanwhile."""
    store = RobotsStore(tmp_path)
    store.wait_for_commits()
    copies = Copies("foo", store, most=0)
    copies.answered(SITE, FILE + b"crawl-delay: 7\n", "sha1:A 2026-11-23T12:00:00Z")
    copies.answered("http://other.example", b"")  # SITE is forgotten, but for the store
    assert may(copies) is False
    assert copies.of(SITE).source == "sha1:A 2026-11-23T12:00:00Z"
    copies.failed(SITE, "robots_unknown")
    if commits:
        store.committed()
    copies.store.close()
    store = RobotsStore(tmp_path)
    store.wait_for_commits()
    again = Copies("foo", store)
    assert may(again) is (False if commits else None)
    known = again.of(SITE)
    assert known.must_ask(again.now() + HOUR) is not commits
    assert known.crawl_delay_at(again.now()) == 7
    assert (known.failures, known.source) == (1, "sha1:A 2026-11-23T12:00:00Z" if commits else None)
    again.store.close()


def test_what_was_kept_is_for_its_owner(tmp_path: Path) -> None:
    keep(tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.name == "robots.sqlite"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stored(tmp_path) is False


def test_a_crawler_of_another_name_reads_the_same_file(tmp_path: Path) -> None:
    keep(tmp_path, b"user-agent: foo\ndisallow: /\nuser-agent: bar\ndisallow: /x")
    assert stored(tmp_path, "foo") is False
    assert stored(tmp_path, "bar") is True


def test_a_large_file_is_cut_as_it_was(tmp_path: Path) -> None:
    keep(tmp_path, FILE + b"#" * LIMIT + b"\nuser-agent: foo\nallow: /\n")
    assert stored(tmp_path) is False
    assert (tmp_path / "robots.sqlite").stat().st_size < 100_000


def test_it_is_whole_after_a_kill(tmp_path: Path) -> None:
    """A process is killed while it writes: what it had said it wrote is there."""
    code = (
        "import sys; from pathlib import Path; from crawl4llm.live.robots_store import RobotsStore\n"
        "store = RobotsStore(Path(sys.argv[1]))\n"
        "for number in range(10**9):\n"
        f"    store.put(f'http://{{number}}.example', {time.time()}, {FILE!r})\n"
        "    print(number, flush=True)\n"
    )
    process = begin_python("-c", code, tmp_path, silent=["err"])
    assert process.stdout is not None
    while (last := int(process.stdout.readline())) < 500:
        pass
    process.send_signal(signal.SIGKILL)
    process.communicate()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"robots.sqlite": 0o600, "robots.sqlite-wal": 0o600}
    store = RobotsStore(tmp_path)
    assert all(store.get(f"http://{number}.example") for number in range(last + 1))
    store.close()


def test_it_is_bounded(tmp_path: Path) -> None:
    body = b"user-agent: *\n" + os.urandom(2000).hex().encode()
    store = RobotsStore(tmp_path, most=200_000)
    for number in range(500):
        store.put(f"http://{number}.example", 1.0, body)
        store.put("http://again.example", 1.0, body)
    assert store.get("http://0.example") is None
    assert store.get("http://499.example") is not None
    assert store.get("http://again.example") is not None
    for number in range(5000):
        store.put_failure(f"http://failed-{number}.example", 1, 1.0, 60.0, "dns")
    store.close()
    assert (tmp_path / "robots.sqlite").stat().st_size < 600_000
    reopened = RobotsStore(tmp_path, most=200_000)
    assert reopened.get("http://499.example") is None
    assert reopened.get("http://failed-4999.example") is not None
    reopened.close()


def damaged(path: Path, how: str) -> None:
    """Damage the file, or put another thing in its place."""
    data = path.read_bytes()
    if how == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "text":
        path.write_bytes(b"user-agent: *\n" * 1000)
    elif how == "zeros":
        path.write_bytes(data[:100] + b"\0" * (len(data) - 100))
    elif how == "noise":
        path.write_bytes(data[:100] + os.urandom(len(data) - 100))
    else:
        path.unlink()
        with sqlite3.connect(path) as db:
            for statement in how.split(";"):
                db.execute(statement)
        db.close()


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"


@pytest.mark.parametrize(
    "how",
    [
        *("cut", "empty", "text", "zeros", "noise"),
        "CREATE TABLE copies (authority TEXT)",
        "CREATE TABLE other (authority TEXT)",
        f"CREATE VIEW copies AS {ENDLESS}",
    ],
)
def test_a_damaged_file_is_begun_anew(tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture) -> None:
    keep(tmp_path)
    damaged(tmp_path / "robots.sqlite", how)
    with caplog.at_level(logging.WARNING):
        assert stored(tmp_path) is None
    assert [f"{tmp_path / 'robots.sqlite'} is damaged" in line for line in caplog.messages] == [True]
    keep(tmp_path)
    assert stored(tmp_path) is False


def test_a_trigger_in_it_does_not_run(tmp_path: Path) -> None:
    keep(tmp_path)
    with sqlite3.connect(tmp_path / "robots.sqlite") as db:
        db.execute("CREATE TRIGGER t AFTER INSERT ON copies BEGIN DELETE FROM copies; END")
    db.close()
    keep(tmp_path)
    assert stored(tmp_path) is False


GOOD: tuple[Any, ...] = (SITE, 0.0, zlib.compress(FILE), 0, 0.0, 0.0, "", "")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (1, math.inf),
        (1, "yesterday"),
        (1, -1.0),
        (1, 9e15),
        (2, b"not compressed"),
        (2, os.urandom(LIMIT * 2)),
        (2, "text"),
        (3, -5),
        (3, "many"),
        (4, math.inf),
        (5, math.inf),
        (5, b"x"),
        (6, "x" * 1000),
        (6, b"x"),
        (7, "x" * 1000),
        (7, b"x"),
    ],
)
def test_rows_that_cannot_be_true(tmp_path: Path, column: int, value: Any) -> None:
    keep(tmp_path)
    row = [*GOOD]
    row[1] = time.time()
    path = tmp_path / "robots.sqlite"

    def put() -> None:
        with sqlite3.connect(path) as db:
            db.execute("REPLACE INTO copies VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        db.close()

    put()
    assert stored(tmp_path) is False
    row[column] = value
    put()
    assert stored(tmp_path) is None


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    keep(tmp_path)
    bomb = zlib.compress(FILE + b"#" * 300_000_000, 9)
    assert len(bomb) < LIMIT
    with sqlite3.connect(tmp_path / "robots.sqlite") as db:
        db.execute("UPDATE copies SET body = ?", (bomb,))
    db.close()
    tracemalloc.start()
    assert stored(tmp_path) is False
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_failures_that_cannot_be_true(tmp_path: Path) -> None:
    """A wait for ever, and a reason that nobody counts."""
    keep(tmp_path)
    with sqlite3.connect(tmp_path / "robots.sqlite") as db:
        db.execute("UPDATE copies SET fetched = NULL, failures = 3, failed = ?, wait = 1e300, reason = 'x'", (9e15,))
    db.close()
    copies = Copies("foo", RobotsStore(tmp_path))
    known, now = copies.of(SITE), copies.now()
    assert known.reason == "robots_unknown"
    assert 0 < (known.waits_until(now) or 0) - now <= DAY
    copies.store.close()


def test_a_folder_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    copies = Copies("foo", RobotsStore(tmp_path / "gone"))
    assert ["is no longer used" in line for line in caplog.messages] == [True]
    assert not (tmp_path / "gone").exists()
    copies.answered(SITE, FILE)
    assert may(copies) is False


def test_a_full_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """/dev/full has no room for anything; SQLite's own limit on pages stands for a disk that has some."""
    store = RobotsStore(tmp_path)
    assert store._db is not None
    store._db.execute("PRAGMA max_page_count = 10")
    copies = Copies("foo", store)
    for number in range(30):
        copies.answered(f"http://{number}.example", os.urandom(3000))
    copies.answered(SITE, FILE)
    assert ["is no longer used" in line for line in caplog.messages] == [True]
    assert may(copies) is False
    copies.store.close()


@pytest.mark.parametrize(("now", "left"), [(1030.0, 30.0), (1e12, 0.0), (-1e12, 60.0)])
def test_a_clock_that_jumps_makes_no_wait_longer(now: float, left: float) -> None:
    known = Known(failures=1, failed=1000.0, wait=60.0)
    assert RobotsUnknown("http://a.example", known, now, is_new=True).wait == left

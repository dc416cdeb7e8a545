"""``scrapy frontier JOBDIR`` on crawls that were really run: it tells the truth, and does things wholly or not."""

from __future__ import annotations

import gzip
import io
import json
import multiprocessing
import os
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from crawl_helpers import PROJECT, Web, begin, crawl, crawl_args, crawl_log, error_of, scrapy, stats
from scrapy.cmdline import execute
from scrapy.settings import Settings
from terminal_helpers import at_terminal

from crawl4llm.base.files import AppendFile
from crawl4llm.base.urls import host_of
from crawl4llm.crawl.commits import read_state
from crawl4llm.crawl.jobdir import JobDir
from crawl4llm.frontier import Entry, Lease, plain, stored
from crawl4llm.frontier.composed import LEASES
from crawl4llm.frontier.opening import stored_frontier
from crawl4llm.frontier.store import Store, StoreError
from crawl4llm.warc import cdxj
from crawl4llm.warc.reader import read_record
from simulate.clueweb22.corpus import ClueWeb22Corpus

SETTINGS = {"CRAWL_SEEDS": 30, "CRAWL_BATCH_SIZE": 20, "WARC_MAX_BYTES": 100_000}
PAGES, LEASED = 150, 3


class Paused(NamedTuple):
    """A crawl that was stopped in the middle of a batch. Its output has been moved since."""

    job: Path
    output: Path
    web: Web

    @property
    def store(self) -> Path:
        return self.job / "store.mdb"

    def opened(self, *, readonly: bool = False) -> closing[Store]:
        return closing(Store(self.store, readonly=readonly))

    def queued(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in out_of(self, "--export", "-").splitlines()]

    def leases(self) -> list[Lease]:
        with self.opened(readonly=True) as store:
            return stored_frontier(store).leases()

    def failures(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.output / "failures.jsonl").read_text().splitlines()]

    def resume(self, pages: int) -> list[dict[str, Any]]:
        """Crawl until there are so many pages; the log."""
        result = crawl(self.web, self.output, JOBDIR=self.job, **{**SETTINGS, "CRAWL_MAX_PAGES": pages})
        assert result.returncode == 0, result.stderr
        return crawl_log(self.output)


@pytest.fixture(scope="module")
def original(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Paused:
    folder = tmp_path_factory.mktemp("frontier")
    paused = Paused(folder / "job", folder / "run", demo_web)
    paused.resume(PAGES)
    with paused.opened() as store:
        frontier = stored_frontier(store)
        frontier.lease(LEASED)
        frontier.save()
        store.commit()
    return paused


@pytest.fixture
def paused(original: Paused, tmp_path: Path) -> Paused:
    copy = Paused(tmp_path / "job", tmp_path / "run", original.web)
    shutil.copytree(original.job, copy.job)
    shutil.copytree(original.output, copy.output)
    return copy


def frontier(*args: object) -> tuple[int, str, str]:
    """Exit status, output and errors of the command, in this process: that saves Scrapy's start-up."""
    settings = Settings({"COMMANDS_MODULE": "crawl4llm.commands"})
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        execute(["scrapy", "frontier", *map(str, args)], settings)
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


def out_of(paused: Paused, *args: object) -> str:
    """What the command prints when it goes well."""
    status, out, err = frontier(paused.job, "-s", f"OUTPUT_DIR={paused.output}", *args)
    assert (status, err) == (0, "")
    return out


def error_line(job: Path, *args: object) -> str:
    """The one line by which the command says what is wrong."""
    status, out, err = frontier(job, *args)
    assert (status, out) == (1, "")
    assert err.startswith("crawl4llm: error: ")
    assert err.count("\n") == 1
    return err


def error_in(paused: Paused, *args: object) -> str:
    return error_line(paused.job, "-s", f"OUTPUT_DIR={paused.output}", *args)


def of(domain: str, url: str) -> bool:
    return f".{host_of(url)}".endswith(f".{domain}")


# -- the balance of documents ---------------------------------------------------------------------------------------


def change_state(paused: Paused, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the crawl's own state as another version, or a fault, would have left it."""
    with paused.opened() as store:
        state = json.loads(store.get("state", b"crawl") or b"")
        change(state["crawl"]["counts"])
        store.put("state", b"crawl", json.dumps(state).encode())
        store.commit()


def test_documents_that_are_lost_are_noticed(paused: Paused) -> None:
    with paused.opened() as store:
        for key, _ in [*store.items(LEASES)][:2]:
            store.delete(LEASES, key)
        store.commit()
    assert "store.mdb is damaged: 2 documents are in no state" in error_in(paused, "--verify")
    status, out, err = frontier(paused.job, "-s", f"OUTPUT_DIR={paused.output}")
    assert (status, err.count("\n")) == (1, 1)
    assert "2 documents are in no state" in err
    assert "leased     1\n" in out, "it shows what there is"
    result = crawl(paused.web, paused.output, JOBDIR=paused.job, **{**SETTINGS, "CRAWL_MAX_PAGES": PAGES + 10})
    assert result.returncode == 1
    assert "an internal error" in result.stderr, "what is lost is not committed"


def test_a_document_in_two_states_is_noticed(paused: Paused) -> None:
    change_state(paused, lambda counts: counts.update({"failed/error": counts.get("failed/error", 0) + 1}))
    assert "1 documents are in two states" in error_in(paused, "--verify")


# -- looking --------------------------------------------------------------------------------------------------------


def test_shows_what_the_crawl_holds(paused: Paused) -> None:
    shown = out_of(paused, "--hosts", 5, "--best", 4)
    figures = stats(paused.output)
    queued = paused.queued()
    assert "now        not running" in shown
    assert f"output     {paused.output}" in shown
    assert f"crawled    {PAGES} of {PAGES} pages" in shown
    assert f"queued     {figures['frontier/queued'] - LEASED}\n" in shown
    assert f"leased     {LEASED}\n" in shown
    assert f"archived   {PAGES}\n" in shown
    assert f"{figures['pages/visited']} discovered = {PAGES} archived + 0 redirected + " in shown
    assert f" + {figures['frontier/queued'] - LEASED} queued + {LEASED} leased + 0 parked\n" in shown
    hosts = Counter(host_of(entry["url"]) for entry in queued)
    largest = [int(count) for count in re.findall(r"^ +(\d+)  [a-z.-]+$", shown, re.MULTILINE)]
    assert largest == [count for _, count in hosts.most_common(5)]
    assert f"(5 of {len(hosts)})" in shown
    best, leased = shown.partition("best documents\n")[2].split("\n\n")
    assert [line.split()[1] for line in best.splitlines()[1:]] == [entry["id"] for entry in queued[:4]]
    assert len(leased.splitlines()) == 2 + LEASED


def test_moved_output_is_no_hindrance_to_looking(paused: Paused) -> None:
    shutil.move(paused.output, paused.output.with_name("moved"))
    status, out, err = frontier(paused.job, "-s", f"OUTPUT_DIR={paused.output}")
    assert (status, err) == (0, "")
    assert "give its new place: -s OUTPUT_DIR=PATH" in out
    assert str(paused.output) in error_in(paused, "--verify")


def test_looks_while_the_crawl_runs(demo_web: Web, tmp_path: Path) -> None:
    running = Paused(tmp_path / "job", tmp_path / "run", demo_web)
    settings = {**SETTINGS, "CRAWL_MAX_PAGES": 1500, "SIMULATION_TEXT": "extracted", "COMMIT_INTERVAL_PAGES": 10}
    process = begin(crawl_args(demo_web, running.output, JOBDIR=running.job, **settings), silent=["out", "err"])
    try:
        log = running.output / "crawl.jsonl"
        while not log.exists() or log.read_bytes().count(b"\n") < 60:
            assert process.poll() is None
            time.sleep(0.02)
        assert f"now        in use by process {process.pid}" in out_of(running)
        assert out_of(running, "--verify").startswith("sound: ")
        process.send_signal(signal.SIGSTOP)  # that it does not end before all is tried
        for change in (["--compact"], ["--purge", "x.example"], ["--inject", PROJECT / "README.md"]):
            assert f"in use by process {process.pid};" in error_in(running, *change)
    finally:
        process.kill()
        process.wait()
    assert "not running" in out_of(running)
    assert out_of(running, "--verify").startswith("sound: ")


def test_export(paused: Paused, tmp_path: Path) -> None:
    queued = paused.queued()
    with paused.opened(readonly=True) as store:
        stored = list(stored_frontier(store).best())
    assert [entry["id"] for entry in queued] == [entry.key for entry in stored]
    assert queued == sorted(queued, key=lambda entry: (-entry["score"], entry["id"]))
    first = stored[0]
    assert list(queued[0].values()) == [first.key, first.url, first.score, first.depth, first.parent, first.attempts]

    for name, opened in (("plain.jsonl", open), ("packed.jsonl.gz", gzip.open)):
        assert f"{len(queued)} documents" in out_of(paused, "--export", tmp_path / name)
        with opened(tmp_path / name, "rt") as file:
            assert [json.loads(line) for line in file] == queued
        before = (tmp_path / name).read_bytes()
        assert "exists already" in error_in(paused, "--export", tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"job", "run", "plain.jsonl", "packed.jsonl.gz"}


# -- checking -------------------------------------------------------------------------------------------------------


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zero(path: Path) -> None:
    """What a power cut leaves of a file that was not synced."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2].ljust(len(content), b"\0"))


def lose(path: Path) -> None:
    path.unlink()


def nest(path: Path) -> None:
    path.write_bytes((b"[" * path.stat().st_size)[:-1] + b"\n")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for place in range(len(content) // 2, len(content), 1999):
        content[place] ^= 0x40
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "file"),
    [
        (cut, "run/crawl.jsonl"),
        (zero, "run/crawl.jsonl"),
        (lose, "run/failures.jsonl"),
        (nest, "run/crawl.jsonl"),
        (zero, "run/warc/index.cdxj"),
        (cut, "run/warc/index.cdxj"),
        (cut, "run/warc/crawl4llm-00000.warc.gz"),
        (lose, "run/warc/crawl4llm-00001.warc.gz"),
        (cut, "run/warc/LAST"),
        (cut, "job/store.mdb"),
        (flip, "job/store.mdb"),
        (lose, "job/store.mdb"),
    ],
)
def test_verify_names_what_is_damaged(paused: Paused, damage: Callable[[Path], None], file: str) -> None:
    out_of(paused, "--purge", domain_of(paused))  # that failures.jsonl is not empty
    assert out_of(paused, "--verify").startswith("sound: ")
    path = paused.job.parent / file
    if path.name == "LAST":
        path = max(path.parent.glob("*.warc.gz"))
    damage(path)
    assert str(path) in error_in(paused, "--verify")


def test_what_follows_the_last_commit_is_no_damage(paused: Paused) -> None:
    for name in ("crawl.jsonl", "failures.jsonl", "warc/index.cdxj"):
        with (paused.output / name).open("ab") as file:
            file.write(b'{"cut sho')
    assert out_of(paused, "--verify").startswith("sound: ")


# -- changing -------------------------------------------------------------------------------------------------------


def test_compact_changes_nothing_but_the_size(paused: Paused) -> None:
    queued, leases = paused.queued(), paused.leases()
    before = paused.store.stat().st_size
    assert re.fullmatch(r"before +\d.* MB\nafter +\d.* MB\n", out_of(paused, "--compact"))
    assert paused.store.stat().st_size < before
    assert (paused.queued(), paused.leases()) == (queued, leases)
    assert out_of(paused, "--verify").startswith("sound: ")


def test_compact_while_another_process_reads(paused: Paused) -> None:
    """LMDB's lock file, which readers share, counts the transactions of the file that was."""
    with reader_of(paused.store):
        out_of(paused, "--compact")
        assert len(paused.queued()) > 100
        with paused.opened() as store:  # as a crawl that is resumed does
            assert len(stored_frontier(store)) > 100


def test_a_lock_file_of_another_store_is_seen(paused: Paused) -> None:
    with reader_of(paused.store):
        copy = paused.store.with_name("store.mdb.copy")
        with paused.opened(readonly=True) as store:
            store.copy_to(copy)
        copy.replace(paused.store)
        for readonly in (True, False):
            with pytest.raises(StoreError, match="still read"):
                Store(paused.store, readonly=readonly)
        assert "still read" in error_in(paused)


@contextmanager
def reader_of(path: Path) -> Iterator[None]:
    """Another process reads a store for as long as this lasts."""
    ready, done = multiprocessing.Event(), multiprocessing.Event()

    def read() -> None:
        with closing(Store(path, readonly=True)):
            ready.set()
            done.wait()

    process = multiprocessing.get_context("fork").Process(target=read)
    process.start()
    try:
        assert ready.wait(60)
        yield
    finally:
        done.set()
        process.join()


def test_inject(paused: Paused, tmp_path: Path) -> None:
    corpus = ClueWeb22Corpus(paused.web.corpus)
    logged = [line["id"] for line in crawl_log(paused.output)]
    known = {entry["id"] for entry in paused.queued()} | set(logged)
    new = [key for key in corpus.sample(200, 7) if key not in known][:3]
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("\n".join([*new, new[0], logged[0], "nonsense", "clueweb22-en0000-99-00000 # not held"]))

    told = dict(re.findall(r"^(.*?) {2,}(\d+)$", out_of(paused, "--inject", seeds), re.MULTILINE))
    assert told == {
        "new": "3", "visited": "1", "injected before": "0", "duplicate": "1", "malformed": "1", "unknown": "1"
    }  # fmt: skip
    again = out_of(paused, "--inject", seeds)
    assert re.search(r"^new +0$", again, re.MULTILINE)
    assert re.search(r"^injected before +3$", again, re.MULTILINE)
    assert "injected   3 seeds" in out_of(paused)

    log = paused.resume(PAGES + 30)
    assert [line["id"] for line in log[: len(logged)]] == logged
    injected = {line["id"]: line for line in log + paused.queued() if line["id"] in new}
    assert injected.keys() == set(new)
    assert all((line["parent"], line["depth"]) == (None, 0) for line in injected.values())
    assert "injected " not in out_of(paused)


def test_inject_into_a_finished_crawl(paused: Paused, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("\n".join(ClueWeb22Corpus(paused.web.corpus).sample(300, 1)))
    assert f"resume it with CRAWL_MAX_PAGES greater than {PAGES}" in out_of(paused, "--inject", seeds)


def test_inject_needs_seeds_of_the_corpus(paused: Paused, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    assert str(seeds) in error_in(paused, "--inject", seeds)
    seeds.write_text("nonsense")
    assert "no usable seed" in error_in(paused, "--inject", seeds)
    other = tmp_path / "corpus"
    shutil.copytree(paused.web.corpus, other)
    shutil.rmtree(other / "html")
    assert f"{other} is not the corpus" in error_in(paused, "--inject", seeds, "-s", f"CORPUS={other}")


def domain_of(paused: Paused) -> str:
    """A domain with many documents in the frontier, and pages in the archive."""
    crawled = {host_of(line["url"]) for line in crawl_log(paused.output)}
    hosts = Counter(host_of(entry["url"]) for entry in paused.queued())
    host = next(host for host, _ in hosts.most_common() if host in crawled and host.count(".") == 2)
    return host.partition(".")[2]


def test_purge(paused: Paused) -> None:
    domain = domain_of(paused)
    before, failed = paused.queued(), paused.failures()
    visited = stats(paused.output)["pages/visited"]
    leased = [lease.entry.key for lease in paused.leases() if of(domain, lease.entry.url)]
    told = out_of(paused, "--purge", f" {domain.upper()} ")
    gone = [entry for entry in before if of(domain, entry["url"])]
    assert gone
    assert f"queued     {len(gone)} dropped\n" in told
    assert paused.queued() == [entry for entry in before if not of(domain, entry["url"])]

    lines = paused.failures()
    assert lines[: len(failed)] == failed
    assert {(line["outcome"], line["reason"]) for line in lines[len(failed) :]} == {("dropped", "opt_out")}
    assert sorted(line["id"] for line in lines[len(failed) :]) == sorted(leased + [entry["id"] for entry in gone])
    assert all(of(domain, line["url"]) for line in lines[len(failed) :])

    listed = [json.loads(line) for line in (paused.output / f"purge-{domain}.jsonl").read_text().splitlines()]
    entries = {entry.id: entry for entry in cdxj.read(paused.output / "warc/index.cdxj")}
    assert [line["id"] for line in listed] == [key for key, entry in entries.items() if of(domain, entry.url)]
    assert f"archived   {len(listed)}, listed for removal" in told
    for line in listed:
        assert (line["url"], line["filename"], line["offset"], line["length"]) == (
            entries[line["id"]].url,
            entries[line["id"]].filename,
            entries[line["id"]].offset,
            entries[line["id"]].length,
        )
        assert read_record(paused.output / "warc", entries[line["id"]])

    assert f"dropped    {len(gone) + len(leased)} (opt_out {len(gone) + len(leased)})" in out_of(paused)
    assert f"{visited} discovered = " in out_of(paused)
    assert "queued     0 dropped" in out_of(paused, "--purge", domain)
    assert paused.failures() == lines
    out_of(paused, "--compact")
    log = paused.resume(PAGES + 100)
    assert paused.failures()[: len(lines)] == lines
    assert not {line["id"] for line in log} & {entry["id"] for entry in gone}
    later = paused.failures()[len(lines) :]
    assert {line["reason"] for line in later if of(domain, line["url"])} <= {"opt_out"}
    assert not [line for line in log[PAGES:] if of(domain, line["url"])], "what is found later is dropped too"
    assert stats(paused.output)["dropped/opt_out"] == len(gone) + len(leased) + len(
        [line for line in later if line["reason"] == "opt_out"]
    )
    assert out_of(paused, "--verify").startswith("sound: ")


def test_a_simulation_has_nothing_to_block(paused: Paused) -> None:
    refused = scrapy("frontier", str(paused.job), "--block", "example.com")
    assert "holds a simulation" in error_of(refused)
    assert not (paused.job / "control.json").exists()


def test_purge_asks_somebody_at_a_terminal(paused: Paused) -> None:
    domain = domain_of(paused)
    before = [path.read_bytes() for path in (paused.store, paused.output / "failures.jsonl")]
    queued = sum(of(domain, entry["url"]) for entry in paused.queued())
    leased = sum(of(domain, lease.entry.url) for lease in paused.leases())
    command = ("frontier", paused.job, "-s", f"OUTPUT_DIR={paused.output}", "--purge", domain)
    seen = at_terminal(*command, typed="no\n")
    assert (seen.status, seen.out) == (1, "")
    assert f"drop {domain} and all below it from JOBDIR {paused.job}: {queued} queued, {leased} leased" in seen.screen
    assert [path.read_bytes() for path in (paused.store, paused.output / "failures.jsonl")] == before
    seen = at_terminal(*command, typed="y\n")
    assert (seen.status, f"queued     {queued} dropped" in seen.out) == (0, True)
    seen = at_terminal(*command, "--yes")
    assert (seen.status, "?" in seen.screen) == (0, False)


def test_purge_finds_leases_and_seeds_that_are_known_by_id_alone(paused: Paused, tmp_path: Path) -> None:
    corpus = ClueWeb22Corpus(paused.web.corpus)
    known = {entry["id"] for entry in paused.queued()} | {line["id"] for line in crawl_log(paused.output)}
    queued, leased, injected = [key for key in corpus.sample(200, 3) if key not in known][:3]
    with paused.opened() as store:
        seeded = stored_frontier(store)
        seeded.push([Entry(leased, "", 2.0, 0, None)])
        seeded.lease(1)
        seeded.push([Entry(queued, "", 2.0, 0, None)])
        seeded.save()
        store.commit()
    (tmp_path / "seeds.txt").write_text(injected)
    out_of(paused, "--inject", tmp_path / "seeds.txt")

    for key, line in ((queued, r"^queued     [1-9]"), (leased, r"^leased     [1-9]"), (injected, r"^injected   1 ")):
        told = out_of(paused, "--purge", host_of(corpus.page(key).url))
        assert re.search(line, told, re.MULTILINE), told
    with paused.opened(readonly=True) as store:
        assert read_state(store).seeds == []
    assert leased not in {lease.entry.key for lease in paused.leases()}
    assert {queued, leased} <= {line["id"] for line in paused.failures()}
    assert queued not in {entry["id"] for entry in paused.queued()}


def test_purge_knows_hosts_however_they_are_written(paused: Paused) -> None:
    urls = {
        "1": "http://xn--bcher-kva.example/",
        "2": "http://user@WWW.B\u00fccher.example.:8080/",
        "3": "http://other-xn--bcher-kva.example/",
        "4": "http://xn--bcher-kva.example.org/",
        "5": "http://[broken/",
    }
    with paused.opened() as store:
        queue = stored_frontier(store)
        queue.push(Entry(key, url, 0.5, 1, "0") for key, url in urls.items())
        queue.save()
        store.commit()
    assert "queued     2 dropped" in out_of(paused, "--purge", "B\u00dcCHER.example.")
    assert [entry["id"] for entry in paused.queued() if entry["id"] in urls] == ["3", "4", "5"]


# -- killed ---------------------------------------------------------------------------------------------------------


def killed_at(step: int, paused: Paused, *args: str) -> bool:
    """Do something in a process that is killed before it does the so manieth thing to the disk; False: it got through.

    The frontier is in many pieces.
    """

    def run() -> None:
        plain.MOST_FRESH = stored._PIECE = 100  # type: ignore[misc]
        for owner, name in _STEPS:
            setattr(owner, name, dying(getattr(owner, name)))
        out_of(paused, *args)

    left = [step]

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **kwargs)

        return counted

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join()
    assert process.exitcode in {0, -signal.SIGKILL}
    return process.exitcode != 0


_STEPS: list[tuple[Any, str]] = [
    (Store, "commit"),
    (Store, "copy_to"),
    (AppendFile, "append"),
    (os, "fsync"),
    (Path, "replace"),
    (Path, "unlink"),
]


def steps(start: Paused, folder: Path, *args: str) -> Iterator[Paused]:
    """Crawls with whom the same was done, each killed a step later."""
    for step in range(100):
        copy = Paused(folder / f"{step}/job", folder / f"{step}/run", start.web)
        shutil.copytree(start.job, copy.job)
        shutil.copytree(start.output, copy.output)
        was_killed = killed_at(step, copy, *args)
        yield copy
        if not was_killed:
            assert step >= 8
            return
    pytest.fail("it never ends")


def test_killed_while_compacting(paused: Paused, tmp_path: Path) -> None:
    queued = paused.queued()
    for killed in steps(paused, tmp_path, "--compact"):
        assert out_of(killed, "--verify").startswith("sound: ")
        assert killed.queued() == queued
        out_of(killed, "--compact")
        assert {path.name for path in killed.job.iterdir()} <= {"job.json", "lock", "store.mdb", "store.mdb-lock"}


def test_killed_while_purging(paused: Paused, tmp_path: Path) -> None:
    domain = domain_of(paused)
    queued = paused.queued()
    out_of(paused, "--purge", "no-such.example")
    for killed in steps(paused, tmp_path, "--purge", domain):
        assert out_of(killed, "--verify").startswith("sound: ")
        out_of(killed, "--purge", domain)
        assert killed.queued() == [entry for entry in queued if not of(domain, entry["url"])]
        dropped = [line["id"] for line in killed.failures()]
        assert {entry["id"] for entry in queued if of(domain, entry["url"])} <= set(dropped)
        assert len(dropped) == len(set(dropped))
        assert f"dropped    {len(dropped)} " in out_of(killed), "its balance holds too"
        assert (killed.output / f"purge-{domain}.jsonl").exists()
    assert out_of(killed, "--verify").startswith("sound: ")


# -- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--compact", "--purge", "x.example"], "--compact and --purge"),
        (["--purge", "http://x.example/"], "is not a domain"),
        (["--purge", ""], "is not a domain"),
        (["--purge", "com"], "com is a public suffix"),
        (["--purge", "github.io"], "--whole-suffix"),
        (["--purge", "a..b"], "is not a domain"),
        (["--export", "/no/such/folder/file"], "/no/such/folder/file cannot be written: /no/such/folder is no folder"),
        (["--export", ""], "--export '' is not the name of a file"),
    ],
)
def test_bad_input(original: Paused, args: list[str], words: str) -> None:
    assert words in error_line(original.job, *args)


@pytest.mark.parametrize("action", [[], ["--verify"], ["--compact"], ["--export", "-"], ["--purge", "x.example"]])
def test_what_is_no_jobdir_is_left_alone(tmp_path: Path, action: list[str]) -> None:
    assert "No such file" in error_line(tmp_path / "absent", *action)
    (tmp_path / "file.txt").touch()
    assert "not one of crawl4llm" in error_line(tmp_path, *action)
    assert [path.name for path in tmp_path.iterdir()] == ["file.txt"]


def test_another_format(paused: Paused) -> None:
    job = json.loads((paused.job / "job.json").read_text())
    (paused.job / "job.json").write_text(json.dumps({**job, "format": 0}))
    assert "has format 0; this version reads format 5; make it again: " in error_in(paused)


def test_crawl_that_has_not_begun(paused: Paused, tmp_path: Path) -> None:
    job = JobDir(tmp_path / "new")
    with closing(Store(job.store_path)) as store:
        store.put("state", b"id", b"1")
        store.commit()
    job.begin({"crawl_id": "1", "output": str(tmp_path), "digests": {}, "settings": {}})
    job.close()
    status, out, _ = frontier(tmp_path / "new")
    assert (status, "queued     0" in out) == (0, True)
    assert "sound" in frontier(tmp_path / "new", "--verify")[1]
    assert "has not begun" in error_line(tmp_path / "new", "--purge", "x.example")


def test_as_users_run_it(original: Paused) -> None:
    result = scrapy("frontier", str(original.job), "--hosts", "0")
    assert (result.returncode, result.stderr) == (0, "")
    assert f"archived   {PAGES}" in result.stdout
    assert "cannot be used" in error_of(scrapy("frontier", str(original.job / "absent"), "--verify"))
    for args in ([str(original.job), "--nonsense"], []):
        assert frontier(*args)[0] == 2

"""Sites that send bodies which unpack to a thousand times as much: memory of a live crawl, and what is kept of them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import psutil
import pytest
from crawl_helpers import crawl, crawl_log, stats
from live_helpers import start_live, text_page

from crawl4llm.warc import cdxj
from crawl4llm.warc.reader import read_stored
from tests.testweb import FewPages, LocalWeb, running
from tests.testweb.misbehaviour import unpacking

KINDS = ("flat", "paragraphs", "nested", "twice", "ratio20")
OF_EACH = 4
PLAIN = 8
MOST_MAIN, MOST_READER = 300 << 20, 400 << 20


def memory(pid: int) -> int:
    """Bytes of a process that it shares with no file; 0 if it has ended."""
    try:
        return int(psutil.Process(pid).memory_full_info().uss)
    except psutil.Error:
        return 0


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str], int, int]:
    """The output of a crawl with bombs, the kinds by URL, and the most memory of its main process and of a reader."""
    folder = tmp_path_factory.mktemp("bombs")
    pages = FewPages({f"good-{number}.test": {"/": text_page(number, []).body} for number in range(PLAIN)})
    rules = {f"{kind}-{number}.test": f"unpacks:{kind}" for number in range(OF_EACH) for kind in KINDS}
    for kind in KINDS:
        unpacking(kind)  # the servers take it from the cache
    main = reader = 0
    with running(LocalWeb(folder / "web", pages, misbehaving=rules)) as web:
        settings = {"DNS_HOSTS": web.hosts_file, "CRAWL_BATCH_SIZE": 0, "DOWNLOAD_MAXSIZE": 10_000_000}
        settings |= {"CRAWL_MAX_PAGES": 1000, "WARC_TEXT": 1}
        with start_live(web.seeds, folder / "run", is_forked=False, **settings) as crawling:
            process = psutil.Process(crawling.pid)
            while crawling.poll() is None:
                main = max(main, memory(crawling.pid))
                for child in children(process):
                    reader = max(reader, memory(child))
                time.sleep(0.05)
            said = crawling.communicate()
        kinds = {web.url(host): kind.partition(":")[2] for host, kind in rules.items()}
    assert crawling.returncode == 0, said
    assert "Traceback" not in said[0] + said[1]
    return folder / "run", kinds, main, reader


def children(process: psutil.Process) -> list[int]:
    try:
        return [child.pid for child in process.children(recursive=True)]
    except psutil.Error:
        return []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux")
def test_memory_is_bounded(crawled: tuple[Path, dict[str, str], int, int]) -> None:
    _, _, main, reader = crawled
    assert 0 < main < MOST_MAIN
    assert 0 < reader < MOST_READER


def test_bombs_fail_as_such_and_others_are_crawled(crawled: tuple[Path, dict[str, str], int, int]) -> None:
    output, kinds, _, _ = crawled
    bombs = {url for url, kind in kinds.items() if kind != "ratio20"}
    lines = [json.loads(line) for line in (output / "failures.jsonl").read_text().splitlines()]
    assert {line["id"]: (line["outcome"], line["reason"]) for line in lines} == dict.fromkeys(bombs, ("failed", "bomb"))
    assert stats(output)["failed/bomb"] == len(bombs) == 4 * OF_EACH
    assert len(crawl_log(output)) == PLAIN + OF_EACH


def test_a_bomb_is_archived_as_it_was_sent(crawled: tuple[Path, dict[str, str], int, int]) -> None:
    """Its line in the log of failures leads to the record."""
    output, kinds, _, _ = crawled
    index = {entry.url: entry for entry in cdxj.read(output / "warc/index.cdxj", redirects=True)}
    for line in map(json.loads, (output / "failures.jsonl").read_text().splitlines()):
        entry = index[line["id"]]
        stored = read_stored(output / "warc", entry.filename, entry.offset, entry.length)
        assert stored.payload == unpacking(kinds[line["id"]])[0]
        assert not entry.id, "it is no page"
        assert line["digest"] == entry.digest
        assert line["rule"].endswith("bytes that unpack to far more")


def test_a_replay_of_the_archive_meets_the_same_bombs(
    crawled: tuple[Path, dict[str, str], int, int], tmp_path: Path
) -> None:
    output, kinds, _, _ = crawled
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("".join(f"{url}\n" for url in kinds))
    given = {"CORPUS": output / "warc", "SCORER": "length", "URL_POLICY": "parent_first"}
    result = crawl(None, tmp_path / "run", seeds=seeds, **given)
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in (tmp_path / "run/failures.jsonl").read_text().splitlines()]
    bombs = {url for url, kind in kinds.items() if kind != "ratio20"}
    assert {line["id"]: line["reason"] for line in lines} == dict.fromkeys(bombs, "bomb")
    assert len(crawl_log(tmp_path / "run")) == OF_EACH

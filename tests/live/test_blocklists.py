"""Block lists in a live crawl, by the servers' own logs: from its beginning, gone, and changed while it runs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from crawl_helpers import crawl_log, scrapy
from live_helpers import start_live, text_page

from tests.testweb import FewPages, LocalWeb, Logged, read_log, running

PAGES = 120
FIRST = "# of the beginning\nlisted.test\nno domain\n"
THEN = "listed.test\nwww.noisy.test\n\nnoisy.test # asked us to go\n"


class Listed(NamedTuple):
    """What was seen of a crawl whose block list was removed, then another one."""

    folder: Path
    output: Path
    asked: list[Logged]
    heeded: float
    """When the crawl had said that it has the new list, by the monotonic clock."""
    log: str

    @property
    def failures(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in (self.output / "failures.jsonl").read_text().splitlines()]


def wait_for(what: Callable[[], object]) -> None:
    end = time.monotonic() + 600
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listed]:
    """A hub leads to a noisy site of many pages, to a listed one, and to a redirect there."""
    folder = tmp_path_factory.mktemp("lists")
    blocked, log, output = folder / "spam.txt", folder / "log", folder / "run"
    blocked.write_text(FIRST)
    os.utime(blocked, (0, 0))
    noisy = {f"/{number}": text_page(number, []).body for number in range(PAGES)}
    noisy["/0"] = text_page(0, list(noisy)).body
    links = ["http://www.noisy.test/0", "http://listed.test/linked", "/away"]
    pages = {"hub.test": {"/": text_page(1, links).body}, "www.noisy.test": noisy, "listed.test": {"/": b"<p>spam"}}
    rules = {"hub.test/away": "to:listed.test/", "odd.test/robots.txt": "to:listed.test/robots.txt"}
    web = LocalWeb(folder / "web", FewPages(pages), misbehaving=rules)
    with running(web):
        settings = {
            "CRAWL_BATCH_SIZE": 0,
            "DOWNLOAD_DELAY": 0.1,
            "DELAY_FACTOR": 0,
            "CRAWL_MAX_PAGES": 1000,
            "BLOCKLISTS": blocked,
            "JOBDIR": folder / "job",
            "DNS_HOSTS": web.hosts_file,
            "LOG_FILE": log,
            "RETRY_WAITS": "0.1",
            "PROGRESS_BAR": "off",
        }
        seeds = [web.url("hub.test"), web.url("listed.test"), web.url("odd.test") + "x"]
        process = start_live(seeds, output, **settings)
        try:
            wait_for(lambda: sum(one.host == "www.noisy.test" for one in read_log(web.log_file)) > 3)
            blocked.unlink()
            wait_for(lambda: "the earlier list stays in force" in log.read_text())
            changed = folder / "changed"
            changed.write_text(THEN)
            os.utime(changed, (0, 0))
            changed.rename(blocked)
            wait_for(lambda: f"BLOCKLISTS {blocked}: 3 domains" in log.read_text())
            heeded = time.monotonic()
            assert process.wait(timeout=600) == 0, log.read_text()
        finally:
            process.kill()
            process.communicate()
    yield Listed(folder, output, read_log(web.log_file), heeded, log.read_text())


def test_a_listed_domain_is_never_asked(listed: Listed) -> None:
    """Not as a seed, for a link or a redirect, nor for its robots.txt, to which another site's leads."""
    assert not [one for one in listed.asked if one.host == "listed.test"]
    assert Counter((line["reason"], "listed.test" in line["id"]) for line in listed.failures)["blocklist", True] == 2
    (away,) = (line for line in listed.failures if line["id"].endswith("/away"))
    assert (away["outcome"], away["reason"]) == ("dropped", "blocklist")


def test_a_changed_list_ends_what_is_queued(listed: Listed) -> None:
    noisy = [one for one in listed.asked if one.host == "www.noisy.test"]
    crawled = [line["id"] for line in crawl_log(listed.output) if "noisy.test" in line["id"]]
    dropped = [line["id"] for line in listed.failures if "noisy.test" in line["id"]]
    assert max(one.arrived for one in noisy) < listed.heeded + 3
    assert len(crawled) > 1
    assert len({*crawled, *dropped}) == len(crawled) + len(dropped) == PAGES
    assert {line["reason"] for line in listed.failures} == {"blocklist", "robots_unknown"}
    stats = json.loads((listed.output / "stats.json").read_text())
    assert stats["crawl4llm/dropped/blocklist"] == len(dropped) + 3
    assert scrapy("frontier", str(listed.folder / "job"), "--verify").stdout.startswith("sound: ")


def test_each_refusal_names_list_and_line(listed: Listed) -> None:
    """By which it can be checked: the output has the list by its digest."""
    told = set()
    for line in listed.failures:
        if line["reason"] == "blocklist":
            found = re.fullmatch(r"BLOCKLISTS spam.txt, line (\d+) \(sha256:([0-9a-f]{64})\)", line["rule"])
            assert found is not None, line
            lines = (listed.output / "blocklists" / found[2]).read_text().splitlines()
            told.add(lines[int(found[1]) - 1].split()[0])
    # What is queued goes by the domain's line; a page whose turn is just then, on a busy machine, by that of its host.
    assert {"listed.test", "noisy.test"} <= told <= {"listed.test", "noisy.test", "www.noisy.test"}


def test_what_is_wrong_is_a_line_of_the_log(listed: Listed) -> None:
    path = listed.folder / "spam.txt"
    said = [line.partition("] ")[2] for line in listed.log.splitlines() if "BLOCKLISTS" in line]
    assert said[1:] == [
        f"ERROR: BLOCKLISTS {path} cannot be read: No such file or directory; the earlier list stays in force",
        f"INFO: BLOCKLISTS {path}: 3 domains",
    ]
    assert said[0] == f"WARNING: BLOCKLISTS {path}: left out line 3 ('no domain' is not one domain)"
    assert "Traceback" not in listed.log


def test_the_output_has_both_lists_and_exports_go_by_the_last(listed: Listed, tmp_path: Path) -> None:
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in (FIRST, THEN)]
    kept = {path.name: path.read_text() for path in (listed.output / "blocklists").iterdir()}
    assert kept == dict(zip(digests, (FIRST, THEN), strict=True))
    now = json.loads((listed.output / "blocklists.json").read_text())
    assert now == {"lists": [{"name": "spam.txt", "sha256": digests[1], "domains": 3}]}
    noisy = sum("noisy.test" in line["id"] for line in crawl_log(listed.output))
    result = scrapy("export", str(listed.output), "--format", "jsonl", "--out", str(tmp_path / "out"))
    assert f"left out: {noisy} blocklist" in result.stdout, result.stderr
    assert "noisy.test" not in "".join(path.read_text() for path in tmp_path.glob("out/documents/*"))
    (listed.output / "blocklists.json").write_text('{"lists": [{"sha256": "../../list"}]}')
    result = scrapy("export", str(listed.output), "--format", "jsonl", "--out", str(tmp_path / "again"))
    assert result.returncode == 1
    assert "which is not in" in result.stderr

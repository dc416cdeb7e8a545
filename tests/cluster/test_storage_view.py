"""Commands on a storage: what they say of a merged folder, of the URL of its storage."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, crawl, error_of, scrapy, stats

from crawl4llm import open_run
from crawl4llm.base.object_store import BUCKET_VIEWED

N = 45
SETTINGS = {"CRAWL_MAX_PAGES": N, "CRAWL_BATCH_SIZE": 15, "CRAWL_SEEDS": 15, "WARC_MAX_BYTES": 200_000}


@pytest.fixture(params=["file", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A storage; views of it are made below the test's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "XDG_CACHE_HOME", str(tmp_path / "cache"))
        if request.param == "s3":
            yield f"{request.getfixturevalue('bucket')}/{tmp_path.name}"
        else:
            (tmp_path / "storage").mkdir()
            yield f"file://{tmp_path / 'storage'}"
    BUCKET_VIEWED.clear()


@pytest.mark.parametrize("url", ["file"], indirect=True)
@pytest.mark.parametrize("batch", [15, 0])
def test_pages_of_a_step_that_has_not_ended_are_not_there(url: str, batch: int, demo_web: Web, tmp_path: Path) -> None:
    """Of a crawl that goes on. In one that has ended, a killed worker may have left some."""
    settings = SETTINGS | {"CRAWL_BATCH_SIZE": batch, "COMMIT_INTERVAL_PAGES": 15}
    assert crawl(demo_web, tmp_path / "worker", **settings, STORAGE=url, CRAWL_PARTITIONS=1).returncode == 0
    storage = tmp_path / "storage"
    (storage / "end.json").unlink()
    last = max(storage.rglob("pages-*.warc.gz"))
    commits = [path for path in storage.glob("p/0000/*/*") if path.name >= last.name.split("-")[1]]
    for path in commits or [last.with_name("exchange-0000")]:
        path.unlink()
    checked = scrapy("archive", "check", url, "--json")
    assert checked.returncode == 0, checked.stdout
    assert 0 < json.loads(checked.stdout)["documents"] < N


@pytest.mark.parametrize("url", ["file"], indirect=True)
@pytest.mark.parametrize("batch", [15, 0])
def test_a_crawl_without_archive_says_so(url: str, batch: int, demo_web: Web, tmp_path: Path) -> None:
    settings = SETTINGS | {"CRAWL_BATCH_SIZE": batch, "WARC_ENABLED": False}
    assert crawl(demo_web, tmp_path / "worker", **settings, STORAGE=url, CRAWL_PARTITIONS=1).returncode == 0
    said = error_of(scrapy("export", url, "--out", str(tmp_path / "export")))
    assert f"{url}: this crawl has no archive (warc/index.cdxj); WARC_ENABLED was off" in said


@pytest.mark.slow
def test_commands_take_a_storage_as_they_take_a_folder(url: str, demo_web: Web, tmp_path: Path) -> None:
    def output(*arguments: str) -> str:
        done = scrapy(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def exported(source: str, name: str) -> list[dict[str, Any]]:
        """The documents in their order, without their places in the archive."""
        said = output("export", source, "--out", str(tmp_path / name), "--format", "jsonl.gz")
        files = (tmp_path / name).rglob("*.jsonl.gz")
        rows = [json.loads(line) for path in files for line in gzip.decompress(path.read_bytes()).splitlines()]
        assert len(rows) == N, said
        return [{name: row[name] for name in row if not name.startswith("warc_")} for row in rows]

    worker = crawl(demo_web, tmp_path / "worker", **SETTINGS, STORAGE=url, CRAWL_PARTITIONS=2)
    assert worker.returncode == 0, worker.stderr
    merged = str(tmp_path / "merged")
    output("cluster", "merge", url, "--out", merged)
    texts = exported(merged, "of-merged")
    if url.startswith("file:"):  # from a bucket the pages below come too, and all of the export once it is compacted
        assert exported(url, "of-storage") == texts
    queue = json.loads(output("frontier", url, "--json"))
    assert (
        queue["queued"]
        == stats(tmp_path / "merged")["frontier/queued"]
        == sum(row["queued"] for row in queue["partitions"])
    )
    assert "use scrapy cluster verify" in error_of(scrapy("frontier", url, "--verify"))
    pages = {page.id: page.text for page in open_run(url).pages()}
    assert pages == {page.id: page.text for page in open_run(merged).pages()}
    view = next((tmp_path / "cache").rglob("index.cdxj")).parent
    assert sum(path.stat().st_blocks for path in view.glob("*.warc*")) == 0, "pages stay in the storage"
    compacted = json.loads(output("cluster", "compact", url, "--json"))
    assert compacted["files"] < compacted["segments"]
    checked = json.loads(output("archive", "check", url, "--json"))
    assert (checked["documents"], checked["files"]) == (N, compacted["files"])
    assert exported(url, "of-compacted") == texts
    assert "this command does not change a storage; merge it first" in error_of(scrapy("archive", "repair", url))

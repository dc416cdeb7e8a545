"""The storage: one contract for a directory and a bucket, and what may be wrong with either."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
from cluster_helpers import differing
from crawl_helpers import Web, crawl, scrapy
from moto.server import ThreadedMotoServer

from crawl4llm.base.errors import InputError
from crawl4llm.cluster.storage import Storage, packed

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket of a server on loopback, with the usual variables set."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    before = dict(os.environ)
    os.environ.update(KEYS, AWS_ENDPOINT_URL=f"http://{host}:{port}")
    boto3.client("s3").create_bucket(Bucket="crawls")
    yield "s3://crawls"
    os.environ.clear()
    os.environ.update(before)
    server.stop()


@pytest.fixture(params=["directory", "bucket"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "bucket":
        return f"{request.getfixturevalue('bucket')}/{tmp_path.name}"
    return f"file://{tmp_path}"


def test_an_object_is_put_once_and_stays(url: str) -> None:
    one, other = Storage(url), Storage(url)
    assert one.get("i/1/a") is None
    assert one.put("i/1/a", b"first")
    assert not other.put("i/1/a", b"second")
    assert other.get("i/1/a") == b"first"
    assert (one.puts, one.put_bytes, other.put_bytes) == (1, 5, 0)


def test_names_and_folders_in_order(url: str) -> None:
    storage = Storage(url)
    for name in ("i/2/b", "i/10/a", "i/2/a", "crawl"):
        storage.put(name, b"")
    assert list(storage.names("i/2")) == ["i/2/a", "i/2/b"]
    assert list(storage.names("")) == ["crawl", "i/10/a", "i/2/a", "i/2/b"]
    assert storage.folders("i") == ["i/10", "i/2"]
    assert (list(storage.names("p")), storage.folders("p")) == ([], [])


def test_json_whatever_is_in_it(url: str) -> None:
    storage = Storage(url)
    content = {"lone": "\udc80", "numbers": [0.1, -0.0, 1e308, None]}
    assert storage.put_packed("one", content)
    assert storage.get_packed("one") == content
    assert storage.get_packed("none") is None


@pytest.mark.parametrize("data", [b"", b"{}", packed(b"{")[:-2], packed(b"no json")])
def test_a_damaged_object_is_named(data: bytes, tmp_path: Path) -> None:
    storage = Storage(f"file://{tmp_path}")
    storage.put("plan", data)
    with pytest.raises(InputError, match=r"STORAGE file://\S+: plan is damaged"):
        storage.get_packed("plan")


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory; make it first"):
        Storage(f"file://{tmp_path}/none")


def test_a_bucket_that_is_not_there(bucket: str) -> None:
    asks: list[Callable[[Storage], object]] = [lambda s: s.get("a"), lambda s: s.put("a", b"")]
    for ask in asks:
        with pytest.raises(InputError, match=r"STORAGE s3://none cannot .* there is no such bucket"):
            ask(Storage("s3://none"))


def test_a_crawl_in_a_bucket(bucket: str, demo_web: Web, tmp_path: Path) -> None:
    common = {"CRAWL_MAX_PAGES": 60, "CRAWL_BATCH_SIZE": 20, "CRAWL_SEEDS": 20}
    storage = f"{bucket}/{tmp_path.name}"
    assert crawl(demo_web, tmp_path / "alone", **common).returncode == 0
    worker = crawl(demo_web, tmp_path / "worker", **common, STORAGE=storage, CRAWL_PARTITIONS=4)
    assert worker.returncode == 0, worker.stderr
    merged = scrapy("cluster", "merge", storage, "--out", str(tmp_path / "merged"))
    assert merged.returncode == 0, merged.stderr
    assert differing(tmp_path / "alone", tmp_path / "merged") == []

"""The storage: one contract for a directory and a bucket, and what may be wrong with either."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from cluster_helpers import Worker, differing, random_web
from crawl_helpers import Web, crawl, error_of, scrapy

from crawl4llm.base import object_store
from crawl4llm.base.errors import InputError
from crawl4llm.cluster.crawl import ClusterCrawl
from crawl4llm.cluster.storage import Storage, packed
from tests.testbucket import KEYS


@pytest.fixture(params=["directory", "bucket"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "bucket":
        return f"{request.getfixturevalue('bucket')}/{tmp_path.name}"
    return f"file://{tmp_path}"


def test_an_object_is_put_once_and_stays(url: str) -> None:
    one, other = Storage(url), Storage(url)
    assert one.get("i/1/a") is one.get_range("i/1/a", 0, 3) is one.size("i/1/a") is None
    assert one.put("i/1/a", b"first")
    assert not other.put("i/1/a", b"second")
    assert (other.get("i/1/a"), other.get_range("i/1/a", 1, 3), other.size("i/1/a")) == (b"first", b"irs", 40)
    assert (one.puts, one.put_bytes, other.put_bytes) == (1, 40, 0)


def test_a_large_object_in_pieces_is_there_whole_or_not_at_all(url: str) -> None:
    one = Storage(url)
    pieces = [bytes([number]) * (7 << 20) for number in range(3)]

    def cut_short() -> Iterator[bytes]:
        yield from pieces
        raise InputError("the source is gone")

    with pytest.raises(InputError, match="the source is gone"):
        one.put_pieces("warc/a", 21 << 20, cut_short())
    assert (one.size("warc/a"), list(one.names("warc"))) == (None, [])
    one.put_pieces("warc/a", 21 << 20, iter(pieces))
    assert one.get_as_is("warc/a") == b"".join(pieces)
    one.put_pieces("warc/a", 21 << 20, cut_short())  # it is there


def test_names_and_folders_in_order(url: str) -> None:
    one = Storage(url)
    for name in ("i/2/b", "i/10/a", "i/2/a", "crawl"):
        one.put(name, b"")
    assert list(one.names("i/2")) == ["i/2/a", "i/2/b"]
    assert list(one.names("")) == ["crawl", "i/10/a", "i/2/a", "i/2/b"]
    assert one.folders("i") == ["i/10", "i/2"]
    assert (list(one.names("p")), one.folders("p")) == ([], [])


def test_json_whatever_is_in_it(url: str) -> None:
    one = Storage(url)
    content = {"lone": "\udc80", "numbers": [0.1, -0.0, 1e308, None]}
    assert one.put_packed("one", content)
    assert one.read("one", one.get("one") or b"") == content


@pytest.mark.parametrize("data", [b"", b"{}", packed(b"{")[:-2], packed(b"no json")])
def test_a_damaged_object_is_named(data: bytes, tmp_path: Path) -> None:
    one = Storage(f"file://{tmp_path}")
    one.put("plan", data)
    with pytest.raises(InputError, match=r"STORAGE file://\S+: plan is damaged"):
        one.read("plan", one.get("plan") or b"")


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory; make it first"):
        Storage(f"file://{tmp_path}/none")


def test_a_bucket_that_is_not_there(bucket: str) -> None:
    asks: list[Callable[[Storage], object]] = [lambda s: s.get("a"), lambda s: s.put("a", b"")]
    for ask in asks:
        with pytest.raises(InputError, match=r"STORAGE s3://none cannot .* there is no such bucket"):
            ask(Storage("s3://none"))


class _Answers(BaseHTTPRequestHandler):
    """Gives one answer to all that is asked, but for what it was given: that it overwrites, and gives back."""

    protocol_version = "HTTP/1.1"
    status, code = 200, ""
    kept: ClassVar[dict[str, bytes]] = {}

    def do_PUT(self) -> None:
        self.kept[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(b"", self.status)

    def do_GET(self) -> None:
        if "?list-type" in self.path:
            self._answer(b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>", self.status)
        else:
            self._answer(self.kept.get(self.path, b""), self.status if self.path in self.kept else 404)

    def _answer(self, body: bytes, status: int) -> None:
        if self.code:
            status, body = self.status, f"<Error><Code>{self.code}</Code></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Mon, 01 Aug 2022 12:00:00 GMT")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Answers]]:
    """A server that answers as the class is set."""

    class Answers(_Answers):
        kept: ClassVar[dict[str, bytes]] = {}

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, value in (KEYS | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(object_store, "_PATIENCE", timedelta(seconds=0.3))
    yield Answers
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (403, "AccessDenied", "refuses these credentials"),
        (403, "RequestTimeTooSkewed", "clock differs from the storage's"),
        (507, "InsufficientStorage", "it is full"),
        (403, "QuotaExceeded", "it is full"),
    ],
)
def test_buckets_that_refuse(status: int, code: str, said: str, answers: type[_Answers]) -> None:
    answers.status, answers.code = status, code
    asks: list[Callable[[Storage], object]] = [
        lambda s: s.get("a"),
        lambda s: s.put("a", b""),
        lambda s: list(s.names("")),
        lambda s: s.folders(""),
    ]
    for ask in asks:
        with pytest.raises(InputError, match=rf"STORAGE s3://crawls/a cannot [^\n]*{said}[^\n]*$"):
            ask(Storage("s3://crawls/a"))


def test_a_bucket_that_overwrites_is_found_out(answers: type[_Answers], demo_web: Web, tmp_path: Path) -> None:
    refused = crawl(demo_web, tmp_path / "out", CRAWL_MAX_PAGES=10, STORAGE="s3://crawls/a", CRAWL_PARTITIONS=4)
    assert "STORAGE s3://crawls/a overwrites existing objects, because it lacks conditional writes" in error_of(refused)
    assert {path.rpartition("/")[2] for path in answers.kept} == {"seeds.txt", "crawl.json"}


@pytest.mark.parametrize(("option", "said"), [("ro", "it is read-only"), ("size=64k", "it is full")])
def test_a_directory_that_takes_nothing(option: str, said: str, tmp_path: Path) -> None:
    """A file system of its own, which only root may mount; elsewhere there is none to try."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", option, "tmpfs", tmp_path], check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        one = Storage(f"file://{tmp_path}")
        with pytest.raises(InputError, match=rf"STORAGE file://\S+ cannot take [^\n]*{said}$"):
            assert all(one.put(f"i/{number}", b"x" * 8192) for number in range(20))
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_worker_that_ends_with_an_error_hands_its_partitions_over(tmp_path: Path) -> None:
    """Others need not wait for its lease to end."""
    web = random_web(3)
    seeds = web.sample(9, 3)
    options = {"url_policy": "length", "crawl_batch_size": 9, "crawl_max_pages": 50}
    (tmp_path / "storage").mkdir()
    worker = Worker(web, tmp_path / "worker", f"file://{tmp_path}/storage", seeds, crawl_partitions=4, **options)
    (tmp_path / "storage/i").write_text("where a folder is wanted")
    with pytest.raises(InputError):
        worker.run(*seeds)
    assert isinstance(worker.crawl, ClusterCrawl)
    assert worker.crawl._liveness.held() == {0, 1, 2, 3}
    worker.crawl.close()
    assert worker.crawl._liveness.held() == frozenset()


def test_a_crawl_in_a_bucket(bucket: str, demo_web: Web, tmp_path: Path) -> None:
    common = {"CRAWL_MAX_PAGES": 60, "CRAWL_BATCH_SIZE": 20, "CRAWL_SEEDS": 20}
    url = f"{bucket}/{tmp_path.name}"
    assert crawl(demo_web, tmp_path / "alone", **common).returncode == 0
    worker = crawl(demo_web, tmp_path / "worker", **common, STORAGE=url, CRAWL_PARTITIONS=4)
    assert worker.returncode == 0, worker.stderr
    merged = scrapy("cluster", "merge", url, "--out", str(tmp_path / "merged"))
    assert merged.returncode == 0, merged.stderr
    assert differing(tmp_path / "alone", tmp_path / "merged") == []

"""Targets: files of a JOBDIR, which anybody may have made. Their checksums hold, so that changes come behind these."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from benchmarks.fuzz.folders import UUID, named
from benchmarks.fuzz.mutators import of_json, of_json_lines
from benchmarks.fuzz.target import Reader, Target


def _jobdir(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.crawl.jobdir import JOB, JobDir

    jobdir = folder / "job"
    jobdir.mkdir()

    def read(data: bytes) -> None:
        (jobdir / JOB).write_bytes(data)
        assert JobDir(jobdir, lock=False).job is not None

    return Reader(read, (InputError,))


def _jobdir_seeds() -> list[bytes]:
    from crawl4llm.crawl.jobdir import FORMAT

    job = {"crawl_id": UUID, "output": "/out", "digests": {"corpus_digest": "a"}, "settings": {"SCORER": "length"}}
    return [json.dumps({"format": FORMAT, "version": "0.6", **job}).encode()]


def _holds(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.frontier.holds import Holds

    path = folder / "owners"

    def read(data: bytes) -> None:
        lines = [line.partition(b" ")[2] for line in data.split(b"\n")]
        path.write_bytes(b"".join(b"%08x %b\n" % (zlib.crc32(line), line) for line in lines))
        holds = Holds(path, fsync=False)
        list(holds.items()), holds.get("a.example")

    return Reader(read, (InputError,))


def _records(_: Path) -> Reader:
    from crawl4llm.frontier.runs import decode, encode, pack, unpack
    from crawl4llm.frontier.store import StoreError

    def read(data: bytes) -> None:
        records = unpack(data)
        assert pack(records) == data
        for record in records:
            with suppress(StoreError):
                encode(decode(record))

    return Reader(read, (ValueError,))


def _record_seeds() -> list[bytes]:
    from crawl4llm.frontier import Entry
    from crawl4llm.frontier.runs import encode, pack

    plain = Entry("http://a.example/", "http://a.example/", 0.5, 1, None)
    full = Entry("k", "http://a.example/b", -0.0, 3, "parent", 2, 1, 7)
    return [pack([encode(plain), encode(full)]), pack([])]


def _states(_: Path) -> Reader:
    from crawl4llm.base import received
    from crawl4llm.base.shapes import fits, misfit
    from crawl4llm.cluster import shapes

    known = {
        name: shape
        for module in (received, shapes)
        for name, shape in vars(module).items()
        if name.isupper() and name != "SHAPES" and not name.startswith("_") and not isinstance(shape, int | str | set)
    }
    names = sorted(known)

    def read(data: bytes) -> None:
        name, said = named(data)
        shape = known.get(name) or known[names[len(name) % len(names)]]
        try:
            content = json.loads(said)
        except RecursionError:
            return
        if not fits([content], shape):
            misfit(content, shape).encode("utf-8", "surrogatepass")

    return Reader(read, (ValueError,))


def _state_seeds() -> list[bytes]:
    run = [0, 1, 0, 2, 0, 0, 5, None]
    frontier = {
        "order": "score",
        "runs": {"next": 1, "runs": [run]},
        "queued": 5,
        "outcomes": [["a", "b", 1]],
    }
    visited = {"runs": {"next": 1, "blocks": 2, "runs": [[0, 1, 2, 3, "ab", [4], ""]]}, "filter": [1, "ff"]}
    exchange = {"rows": [[0, None, None, None]], "pages": None, "counts": {"a": 1}, "influence": [0.5, 1]}
    named = {
        "FRONTIER": frontier,
        "VISITED": visited,
        "EXCHANGE": exchange,
        "HEAD": [1, 2, 0, None, [1], None, [[0, 5]]],
    }
    return [f"{name}\n{json.dumps(content)}".encode() for name, content in named.items()]


def _bloom(folder: Path) -> Reader:
    from crawl4llm.frontier.bloom import FingerprintFilter

    path = folder / "filter"

    def read(data: bytes) -> None:
        path.write_bytes(data + zlib.crc32(data).to_bytes(4, "little"))
        FingerprintFilter.load(path, most_bytes=1 << 16, fsync=False)

    return Reader(read, (OSError, ValueError))


def _bloom_seeds() -> list[bytes]:
    import tempfile

    from crawl4llm.frontier.bloom import FingerprintFilter
    from crawl4llm.frontier.fingerprints import Mark, fingerprint

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "filter")
        made = FingerprintFilter(path, most_bytes=1 << 16, fsync=False)
        for number in range(5):
            made.add(fingerprint(str(number)))
        made.save(Mark(5, 77))
        return [path.read_bytes()[:-4]]


def _requests(folder: Path) -> Reader:
    from crawl4llm.base.crawl_log import FAILURES
    from crawl4llm.base.errors import InputError
    from crawl4llm.crawl.jobdir import REQUESTS
    from crawl4llm.tools.report import Log

    days = folder / REQUESTS
    days.mkdir()
    (folder / FAILURES).touch()
    plain = days / "2026-05-31.jsonl"

    def read(data: bytes) -> None:
        plain.write_bytes(data)
        for request in Log(folder).requests():
            assert isinstance(request.owner, str), request

    return Reader(read, (InputError,))


_REQUEST: Final = {
    "time": "2026-05-31T00:00:00.0Z",
    "owner": "a.example",
    "url": "http://a.example/",
    "for": "page",
    "status": 200,
    "error": None,
    "bytes": 5,
    "ms": 3,
    "waited": 0.5,
    "rule": None,
    "price": None,
    "sent": True,
}


_STATEFUL: Final = ("link", "host", "pagerank", "backlink", "parent_first", "ensemble", "hot_queue", "novelty")


def _policies(_: Path) -> Reader:
    """States of policies in a JOBDIR: what load() refuses ends the crawl in one line, and what it takes must work."""

    def read(data: bytes) -> None:
        name, state = named(data)
        policy = _policy(name if name in _STATEFUL else _STATEFUL[len(name) % len(_STATEFUL)])
        try:
            policy.load(state)
        except (ArithmeticError, LookupError, AttributeError, RecursionError, TypeError, ValueError, struct.error):
            return
        _go_on(policy)

    return Reader(read)


def _policy(name: str) -> Any:
    """Return a policy; scorers give each page the same score."""
    from types import SimpleNamespace

    from crawl4llm.options import Options
    from crawl4llm.policies._ordering import make_policy

    settings: dict[str, Any] = {"url_policy": name}
    if name == "ensemble":
        settings["ensemble_weights"] = "length:1"
    elif name == "hot_queue":
        settings = {"url_policy": "backlink", "hot_queue_topic": ("cheese",)}

    async def run(_: object, keys: Sequence[str]) -> list[Any]:
        return [[0.5] for _ in keys]

    workers: Any = SimpleNamespace(rater=SimpleNamespace(mentions=None), run=run)
    if name == "novelty":
        from crawl4llm.policies._novelty import Novelty  # make_policy has it with KNOWN_TEXTS, a file

        return Novelty(_policy("backlink"))
    return make_policy(workers, Options(**settings))


def _go_on(policy: Any) -> bytes:
    """Tell a policy of some pages, ask it for scores, and return what it saves then."""
    from crawl4llm.base.pages import Link
    from crawl4llm.frontier import Entry
    from crawl4llm.policies import Candidate, CrawledPage

    keys = ("a.example/", "b.example/", "b.example/1")
    links = [Link(f"http://{key}", key, "cheese", False) for key in keys]
    entries = [Entry(key, f"http://{key}", 0.5, 1, None) for key in keys]
    policy.dequeued(entries[:1])
    for entry in entries[:2]:
        policy.crawled(CrawledPage(entry, 0.25, links, novel=entry.key != keys[0]))
    found = [Candidate(key, f"http://{key}", 2, "a.example/", "x") for key in (*keys[1:], "c.example/")]
    with suppress(StopIteration):  # which ends a coroutine that has awaited nothing
        policy.score(found).send(None)
    list(policy.reranked())
    saved: bytes = policy.save()
    return saved


def _policy_seeds() -> list[bytes]:
    return [f"{name}\n".encode() + _go_on(_policy(name)) for name in _STATEFUL]


def _job_lines(lines: list[Any]) -> bytes:
    return b"\n".join(b"00000000 " + json.dumps(line).encode() for line in lines)


TARGETS: Final = (
    Target("jobdir", _jobdir, _jobdir_seeds, of_json, weight=0.5),
    Target(
        "holds",
        _holds,
        lambda: [_job_lines([["a.example", 1e10, 5.0, False], ["b", 0, 0, True, 1, 2.0]])],
        of_json_lines,
    ),
    Target("records", _records, _record_seeds),
    Target("shapes", _states, _state_seeds, of_json_lines),
    Target("bloom", _bloom, _bloom_seeds, of_json_lines, longest=1 << 17, weight=0.5),
    Target("requests", _requests, lambda: [json.dumps(_REQUEST).encode() + b"\n"], of_json_lines, weight=0.5),
    Target("policies", _policies, _policy_seeds, of_json_lines, weight=2),
)

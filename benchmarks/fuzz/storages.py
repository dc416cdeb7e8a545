"""Targets: objects of a storage, which may come from anybody. Commits, snapshots, segments, orders, plans, figures.

Each ends with a checksum that its reader compares; the targets make it anew, so that changes come behind that.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from benchmarks.fuzz.mutators import of_json, of_json_lines
from benchmarks.fuzz.target import Reader, Target

_PAGE: Final = {
    "id": "http://a.example/",
    "url": "http://a.example/",
    "priority": 0.5,
    "influence": 0.25,
    "depth": 1,
    "parent": None,
    "visited": 2,
    "fetched": 3,
}
_FAILURE: Final = {
    "id": "k",
    "url": "http://b.example/",
    "outcome": "failed",
    "reason": "http_404",
    "depth": 1,
    "parent": None,
}
_MAIL: Final = {
    "targets": [["http://c.example/", "", "", False], ["http://d.example/", "http://d.example/x", "", False]],
    "pages": [[0, [0, 1], None, 1]],
    "redirects": [["http://e.example/", 0.5, 1, None, 2]],
}
_ANCHORED: Final = {"targets": [["k", "", "anchor", False]], "pages": [[0, [0], [0], 0]], "redirects": []}


def _commits(_: Path) -> Reader:
    from crawl4llm.cluster import journal, objects, shapes
    from crawl4llm.cluster.storage import Storage, StorageError, packed
    from crawl4llm.cluster.stores import Patch, records

    storage = Storage("file:///tmp")

    def read(data: bytes) -> None:
        head, _, other = data.partition(b"\n")
        lines, *rest = other.split(b"\n")
        mail, changes = packed(rest[0] if rest else b""), b"\n".join(rest[1:])
        facts: Any = head
        with suppress(ValueError, RecursionError):
            facts = json.loads(head)
        object_ = data  # as it is, if it has no head
        with suppress(TypeError, ValueError):
            object_ = objects.encode(facts, (packed(lines), packed(changes), b""), {1: mail})
        commit = journal.decode(storage, 0, 1, object_)
        pages, _, dropped = storage.read("commit", commit.lines, shapes.LINES)
        for section in commit.sections.values():
            content = storage.read("commit", section, shapes.SECTION)
            with storage.reading("commit"):
                objects.redirects_in(content)
                for place in objects.links_in(content):
                    dropped[~place] if place < 0 else pages[place]
        with storage.reading("commit"):
            for _, _, value in records(changes):
                if isinstance(value, Patch):
                    value.applied_to(b"a,b,c")

    return Reader(read, (StorageError,))


def _commit_seeds() -> list[bytes]:
    from crawl4llm.cluster.stores import encoded
    from crawl4llm.frontier.store import TABLES

    table = next(iter(TABLES))
    changes = encoded([(table, b"key", b"value", None), (table, b"kez", None, None), ("state", b"s", b"a,b", b"a,c")])
    head = [1, 2, 0, None, [1, 0], None]
    parts = [json.dumps(one).encode() for one in (head, [[_PAGE], [_FAILURE], []], _MAIL)]
    return [b"\n".join([*parts, changes])]


def _objects(_: Path) -> Reader:
    from crawl4llm.cluster import shapes
    from crawl4llm.cluster.objects import Plan, links_in, make_plan
    from crawl4llm.cluster.storage import Storage, StorageError, packed

    storage = Storage("file:///tmp")
    names = [name for name in vars(shapes) if name.isupper() and len(name) > 2 and name != "COUNTS"]

    def read(data: bytes) -> None:
        name, _, content = data.partition(b"\n")
        shape = name.decode("latin-1") if name.decode("latin-1") in names else names[len(name) % len(names)]
        if isinstance(getattr(shapes, shape), int):
            return
        found: Any = storage.read(shape, packed(content), getattr(shapes, shape))
        if shape == "OFFER":
            make_plan([found, found], {}, 3)
        elif shape == "PLAN":
            Plan(*found).places(0)
        elif shape == "SECTION":
            links_in(found)

    return Reader(read, (StorageError,))


def _object_seeds() -> list[bytes]:
    offer = {
        "queued": 2,
        "keys": ["a", "b"],
        "scores": [1.0, 0.5],
        "news": [[0, 1, 1]],
        "counts": {"a": 1},
        "crawled": 1,
    }
    segment = f"p/0001/pages-00000001-{'a' * 64}.warc.gz"
    named: Mapping[str, Any] = {
        "OFFER": {**offer, "failures": [[0, True, 1, 2, _FAILURE]]},
        "PLAN": [3, [0, 1], ["a", "b"], 0.5],
        "SEGMENTS": [[segment, 0, 10, 0, 5]],
        "SECTION": _MAIL,
        "EXCHANGE": {"rows": [[0, _PAGE, None, {"date": None, "language": "en", "opt_outs": ""}]], "pages": segment}
        | {"counts": {}},
        "QUOTA": [0, 5],
        "END": {"reason": "frontier_empty", "iteration": 1, "crawled": 2},
        "CRAWL": {
            "format": 1,
            "id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "identity": {"CRAWL_PARTITIONS": 2, "CRAWL_MAX_PAGES": 5, "CRAWL_BATCH_SIZE": 0},
            "facts": {
                "crawl_id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
                "policy": "influence",
                "corpus": "live",
                "model_digest": None,
                "extractor": None,
                "settings": {"URL_POLICY": "a", "WARC_ENABLED": True, "WARC_COMPRESSION": "gzip", "WARC_MAX_BYTES": 1},
            },
            "archive": {"prefix": "crawl", "start_date": "2022-08-01T12:00:00Z", "fields": {"software": "x"}},
            "seeds": {"seeds/given": 1},
        },
    }
    pairs = [*named.items(), ("SECTION", _ANCHORED)]
    return [f"{name}\n{json.dumps(content)}".encode() for name, content in pairs]


def _orders(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.cluster.complaints import FOLDER, Controls
    from crawl4llm.cluster.storage import Storage, packed, sealed

    (folder / FOLDER).mkdir()
    name = f"{FOLDER}/00000001"
    storage = Storage(f"file://{folder}")

    def read(data: bytes) -> None:
        (folder / name).write_bytes(sealed(name, packed(data)))
        assert Controls(storage).look()

    return Reader(read, (InputError,))


def _sealed(folder: Path) -> Reader:
    from crawl4llm.cluster.storage import Storage, StorageError

    storage = Storage(f"file://{folder}")

    def read(data: bytes) -> None:
        (folder / "name").write_bytes(data)
        with suppress(StorageError):
            storage.read("name", data)
        storage.read("name", storage.get("name") or b"")

    return Reader(read, (StorageError,))


def _sealed_seeds() -> list[bytes]:
    from crawl4llm.cluster.storage import pack, sealed

    return [sealed("name", pack(_MAIL))]


def _request_parts(folder: Path) -> Reader:
    from crawl4llm.cluster.complaints import lines_of
    from crawl4llm.cluster.storage import Storage, StorageError, packed, sealed
    from crawl4llm.crawl.jobdir import REQUESTS

    name = f"{REQUESTS}/worker/00000001"
    (folder / name).parent.mkdir(parents=True)
    storage = Storage(f"file://{folder}")

    def read(data: bytes) -> None:
        (folder / name).write_bytes(sealed(name, packed(data)))
        for day, line in lines_of(storage):
            assert len(day) == 10, line

    return Reader(read, (StorageError,))


def _spool(folder: Path) -> Reader:
    import zlib

    from crawl4llm.base.files import ArchiveError
    from crawl4llm.crawl.answer_spool import AnswerSpool
    from crawl4llm.crawl.reorder_buffer import Answer
    from crawl4llm.frontier import Entry, Lease

    path = folder / "answers"
    head = struct.Struct("<QIQI")

    def read(data: bytes) -> None:
        told, _, bodies = data.partition(b"\n")
        path.write_bytes(head.pack(7, len(told), len(bodies), zlib.crc32(bodies, zlib.crc32(told))) + told + bodies)
        spool = AnswerSpool(path)
        try:
            answers, _ = spool.recall([Answer(Lease(Entry("k", "k", 0.5, 1, None), 7))])
            for answer in answers:
                spool.restore(answer)
        finally:
            spool.close()

    return Reader(read, (ArchiveError,))


def _spool_seeds() -> list[bytes]:
    capture = {
        "url": "http://a.example/",
        "date": "2026-01-01T00:00:00Z",
        "method": "GET",
        "status": 200,
        "reason": "OK",
        "request_headers": [["a", "b"]],
        "request_body": 0,
        "headers": [["c", "d"]],
        "body": 3,
        "exact_headers": True,
    }
    page = {"key": "k", "url": "k", "date": None, "text": None, "language": None, "outlinks": [["u", "k", "a", False]]}
    told = {
        "key": "k",
        "status": 200,
        "reason": None,
        "why": ["rule", None, None],
        "outcome": None,
        "size": 3,
        "page": {**page, "html": "body", "captures": [capture]},
    }
    hop = {"key": "k", "hop": "http://b.example/", "captures": [capture]}
    return [json.dumps(told).encode() + b"\n<p>", json.dumps(hop).encode() + b"\n<p>"]


def _last_words(_: Path) -> Reader:
    from crawl4llm.cluster.liveness import _told

    def read(data: bytes) -> None:
        figures = _told(data.decode("utf-8", "surrogateescape"))
        assert all(abs(value) < 1e300 for value in figures.values())

    return Reader(read)


TARGETS: Final = (
    Target("commits", _commits, _commit_seeds, of_json_lines, megabytes=256, weight=2),
    Target("objects", _objects, _object_seeds, of_json_lines, megabytes=256, weight=1.5),
    Target("orders", _orders, lambda: [b'{"time": "2026-01-01", "blocked": ["a.example"]}'], of_json, weight=0.5),
    Target("sealed", _sealed, _sealed_seeds, weight=0.5),
    Target(
        *("request-parts", _request_parts, lambda: [b'{"time": "2026-05-31T00:00:00.0Z", "owner": "a.example"}\n']),
        of_json_lines,
        weight=0.5,
    ),
    Target("answers", _spool, _spool_seeds, of_json_lines),
    Target("last-words", _last_words, lambda: [b'{"pages": 1}'], of_json, weight=0.5),
)

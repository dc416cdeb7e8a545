"""Targets: files of run folders, JOBDIRs, exports and models, which anybody may have made, and lists of users."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from benchmarks.fuzz.mutators import of_json, of_json_lines
from benchmarks.fuzz.target import Reader, Target

_UUID: Final = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
_LINE: Final = {
    "iteration": 1,
    "id": "http://a.example/",
    "url": "http://a.example/",
    "priority": 0.5,
    "influence": 0.25,
    "depth": 1,
    "parent": None,
    "crawled": 3,
    "visited": 9,
    "fetched": 3,
}
_RUN_FILES: Final[dict[str, Any]] = {
    "settings.json": {
        "crawl_id": _UUID,
        "policy": "influence",
        "corpus": "live",
        "model_digest": None,
        "extractor": "trafilatura",
        "versions": {"crawl4llm": "0.6"},
        "settings": {"URL_POLICY": "influence", "WARC_ENABLED": True, "WARC_MAX_BYTES": 1, "QUALITY_THRESHOLD": None},
    },
    "stats.json": {"finish_reason": "finished", "crawl4llm/pages/crawled": 3, "crawl4llm/influence/mean": 0.5},
    "manifest.json": {
        "crawl4llm": "0.6",
        "settings": {"a": 1},
        "sources": [{"path": "run"}],
        "documents": 1,
        "text_bytes": 2,
        "shards": [{"name": "00000.jsonl.gz", "tokens": 3, "sha256": "a" * 64, "languages": {"en": 1}, "bytes": 5}],
    },
    "listed.json": {"left_out": {"dropped": 1}, "scores": True},
    "unfit.json": {"12": "too long"},
    "division.json": {"tasks": 4},
    "oracle.json": {"threshold": 0.5},
    "request.json": {"state": [1, 2]},
}


def _named(data: bytes) -> tuple[str, bytes]:
    """Return the file's name in the first line of an input, and the content after it."""
    name, _, content = data.partition(b"\n")
    return name.decode("latin-1"), content


def _run_json(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.base.received import SHAPES
    from crawl4llm.base.run_folder import read_json

    names = sorted(SHAPES)

    def read(data: bytes) -> None:
        name, content = _named(data)
        path = folder / (name if name in SHAPES else names[len(name) % len(names)])
        path.write_bytes(content)
        try:
            found = read_json(path)
        except InputError as refused:
            told = str(refused)
        else:
            assert isinstance(found, dict)
            told = ""
        finally:
            path.unlink()
        assert "\n" not in told, told

    return Reader(read)


def _crawl_log(folder: Path) -> Reader:
    from crawl4llm.base.crawl_log import CrawlLine, FailureLine, is_whole, read_log
    from crawl4llm.base.errors import InputError
    from crawl4llm.tools.archive.lines import parse_log_line, read_lines

    path = folder / "crawl.jsonl"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        for line in read_lines(path):
            parse_log_line(line)
        for parsed in read_log(path):
            is_whole(parsed, CrawlLine), is_whole(parsed, FailureLine)

    return Reader(read, (InputError,))


def _series(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.base.series import NAME, read_series

    def read(data: bytes) -> None:
        (folder / NAME).write_bytes(data)
        read_series(folder)

    return Reader(read, (InputError,))


def _series_seeds() -> list[bytes]:
    from crawl4llm.base.series import FIELDS, FORMAT

    point = {**dict.fromkeys(FIELDS, 1), "best": [[0.5, 1]]}
    return [b"".join(json.dumps(line).encode() + b"\n" for line in ({"format": FORMAT}, point, point))]


def _control(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.base.output_dir import BLOCKED, BLOCKLISTS
    from crawl4llm.crawl.blocklists import published
    from crawl4llm.crawl.control import CONTROL, read_blocked, read_control

    def read(data: bytes) -> None:
        for name in (CONTROL, BLOCKED, BLOCKLISTS):
            (folder / name).write_bytes(data)
        with suppress(InputError):
            read_blocked(folder)
        with suppress(InputError):
            published(folder)
        control = read_control(folder)
        control.delay_of("example.com")

    return Reader(read, (InputError,))


def _domains(folder: Path) -> Reader:
    from crawl4llm.base.domain_lists import DomainList
    from crawl4llm.base.errors import InputError
    from crawl4llm.live.addresses import read_hosts

    path = folder / "list"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        with suppress(InputError):
            read_hosts(path)
        found = DomainList(path, "BLOCKLISTS")
        found.line_of("a.b.example.com")
        assert found.fault is None or "\n" not in found.fault, found.fault

    return Reader(read, (InputError,))


def _known(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.base.known_sets import MAGIC
    from crawl4llm.crawl.known_urls import KnownUrls

    path = folder / "urls.known"

    def read(data: bytes) -> None:
        if data.startswith(MAGIC):
            said, _, rest = data[len(MAGIC) :].partition(b"\n")
            data = MAGIC + said + b"\n" + hashlib.sha256(said).hexdigest().encode() + rest[64:]
        path.write_bytes(data)
        known = KnownUrls([str(path)])
        known.why("http://a.example/"), list(known.lines), len(known)

    return Reader(read, (InputError,))


def _known_seeds() -> list[bytes]:
    import io

    import numpy as np

    from crawl4llm.base.known_sets import SetWriter
    from crawl4llm.crawl.known_urls import KIND, URL_SCHEME, url_fingerprint

    file = io.BytesIO()
    writer = SetWriter(file)
    prints = np.array(sorted({url_fingerprint(f"http://a.example/{number}") for number in range(9)}), dtype=np.uint64)
    writer.fingerprints(KIND, len(prints), [prints])
    writer.finish(KIND, URL_SCHEME, len(prints))
    return [file.getvalue(), b"# c\nhttp://a.example/\nhttps://b.example/x\n"]


class _Corpus:
    """A corpus of which all URLs and words are documents."""

    def is_key(self, key: str) -> bool:
        return key.isalnum()

    def resolve(self, url: str) -> str:
        from crawl4llm.base.urls import normalise_url

        return normalise_url(url)

    def __contains__(self, key: object) -> bool:
        return True


def _seeds(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.crawl.seeds import read_seeds

    corpus: Any = _Corpus()
    paths = (folder / "seeds.txt", folder / "seeds.txt.gz")

    def read(data: bytes) -> None:
        path = paths[data.startswith(b"\x1f\x8b")]
        path.write_bytes(data)
        read_seeds(path, corpus)

    return Reader(read, (InputError,))


def _models(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.scoring.model_rules import read_rules, rules_path

    model = folder / "model.bin"

    def read(data: bytes) -> None:
        rules_path(model).write_bytes(data)
        read_rules(model)

    return Reader(read, (InputError,))


def _model_seeds() -> list[bytes]:
    from crawl4llm.scoring.model_rules import ModelRules

    return [json.dumps(ModelRules("__label__hq", "trafilatura", "a" * 64).to_json()).encode()]


def _classifiers(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.scoring.classifiers import read_classifiers

    path = folder / "classifiers.json"
    (folder / "topic.bin").write_bytes(_fasttext_seeds()[0])

    def read(data: bytes) -> None:
        path.write_bytes(data)
        assert read_classifiers(path)

    return Reader(read, (InputError,))


def _fasttext(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.scoring.fasttext_file import inspect_model

    path = folder / "model.bin"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        inspect_model(path)

    return Reader(read, (InputError,))


def _fasttext_seeds() -> list[bytes]:
    """Return a classifier of one word, two labels and two dimensions, as fastText lays it out."""
    entry = struct.Struct("<qb")
    head = struct.pack("<ii12id", 793712314, 12, 2, 5, 5, 1, 5, 1, 3, 3, 0, 0, 0, 100, 0.0)
    words = b"word\0" + entry.pack(3, 0) + b"__label__a\0" + entry.pack(2, 1) + b"__label__b\0" + entry.pack(1, 1)
    body = struct.pack("<iiiqq", 3, 1, 2, 6, -1) + words
    matrix = [struct.pack(f"<?qq{2 * rows}f", False, rows, 2, *[0.5] * 2 * rows) for rows in (1, 2)]
    return [head + body + b"".join(matrix)]


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

    job = {"crawl_id": _UUID, "output": "/out", "digests": {"corpus_digest": "a"}, "settings": {"SCORER": "length"}}
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
        name, said = _named(data)
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
        "indexed": True,
        "owned": None,
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
    from crawl4llm.tools.report.requests import Log

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


def _contest(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.tools.evaluate.contest.results import read_results
    from crawl4llm.tools.evaluate.contest.track import read_track

    path = folder / "contest.json"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        with suppress(InputError):
            read_results(path)
        read_track(str(path))

    return Reader(read, (InputError,))


def _contest_seeds() -> list[bytes]:
    from crawl4llm.tools.evaluate.contest.track import TRACKS

    track = TRACKS["small"]
    webs = [{"name": web.name, "demo": web.demo and web.demo._asdict()} for web in track.webs]
    numbers = {"seed_sets": track.seed_sets, "seeds": track.seeds, "batch": track.batch}
    return [json.dumps({"track": track.name, "webs": webs, **numbers}).encode()]


def _changes(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.tools.archive.changes import JOURNAL, complete

    def read(data: bytes) -> None:
        (folder / JOURNAL).write_bytes(data)
        complete(folder)

    return Reader(read, (InputError,))


def _texts(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.tools.trainscorer.text_files import jsonl_texts

    path = folder / "texts.jsonl"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        for text in jsonl_texts(path, "text"):
            assert isinstance(text, str)

    return Reader(read, (InputError,))


_STATEFUL: Final = ("link", "host", "pagerank", "backlink", "parent_first", "ensemble", "hot_queue", "novelty")


def _policies(_: Path) -> Reader:
    """States of policies in a JOBDIR: what load() refuses ends the crawl in one line, and what it takes must work."""

    def read(data: bytes) -> None:
        name, state = _named(data)
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
        return [SimpleNamespace(scores=[0.5]) for _ in keys]

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


_LISTS: Final = b"# c\nexample.com\n0.0.0.0 ads.example.net a.example.org\n*.b.example\n.co.uk\n127.0.0.1 localhost\n"

TARGETS: Final = (
    Target(
        *("run-json", _run_json),
        lambda: [f"{name}\n{json.dumps(content)}".encode() for name, content in _RUN_FILES.items()],
        of_json_lines,
        weight=1.5,
    ),
    Target("crawl-log", _crawl_log, lambda: [json.dumps(_LINE).encode() + b"\n"] * 2, of_json_lines),
    Target("series", _series, _series_seeds, of_json_lines, weight=0.5),
    Target(
        *("control", _control),
        lambda: [b'{"delay": 1.5, "delays": {"example.com": 30}, "max_pages": 5, "blocked": ["a.example"]}', b"{}"],
        of_json,
    ),
    Target(
        *("domains", _domains, lambda: [_LISTS, b"10.0.0.1 a.example b.example\n::1 c.example # c\n"]),
        harmless=frozenset({"socket.getaddrinfo"}),  # which is asked for numbers alone, and asks no server for these
    ),
    Target("known", _known, _known_seeds, of_json_lines, megabytes=64),
    Target("seeds", _seeds, lambda: [b"# c\nhttp://a.example/ # d\nabc\n", b"\xef\xbb\xbfabc\n"], weight=0.5),
    Target("models", _models, _model_seeds, of_json),
    Target(
        *("classifiers", _classifiers),
        lambda: [b'{"topic": {"model": "topic.bin", "shares": {"__label__a": 0.25, "*": 0.75}}}'],
        of_json,
    ),
    Target("fasttext", _fasttext, _fasttext_seeds, weight=1),
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
    Target("contest", _contest, _contest_seeds, of_json, weight=0.5),
    Target("changes", _changes, lambda: [b'{"new": [], "gone": []}'], of_json, weight=0.5),
    Target("policies", _policies, _policy_seeds, of_json_lines, weight=2),
    Target("texts", _texts, lambda: [b'{"text": "a"}\n\xef\xbb\xbf{"text": "b"}\n'], of_json_lines, weight=0.5),
)

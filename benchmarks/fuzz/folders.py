"""Targets: files of run folders, exports and models, which anybody may have made, and lists of users."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from benchmarks.fuzz.mutators import of_json, of_json_lines
from benchmarks.fuzz.target import Reader, Target

UUID: Final = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
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
        "crawl_id": UUID,
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


def named(data: bytes) -> tuple[str, bytes]:
    """Return the file's name in the first line of an input, and the content after it."""
    name, _, content = data.partition(b"\n")
    return name.decode("latin-1"), content


def _run_json(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.base.received import SHAPES
    from crawl4llm.base.run_folder import read_json

    names = sorted(SHAPES)

    def read(data: bytes) -> None:
        name, content = named(data)
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
    from crawl4llm.tools.archive.facts import parse_log_line, read_lines

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
    from crawl4llm.crawl.control import CONTROL, read_blocked, read_control
    from crawl4llm.parts.blocklists.work import published

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


class _Corpus:
    """A corpus of which all URLs and words are documents."""

    name = "fuzz"

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
    from crawl4llm.tools.evaluate.contest.track import SMALL

    webs = [{"name": web.name, "demo": web.demo} for web in SMALL.webs]
    numbers = {"seed_sets": SMALL.seed_sets, "seeds": SMALL.seeds, "batch": SMALL.batch}
    return [json.dumps({"track": SMALL.name, "webs": webs, **numbers}).encode()]


def _trainlm(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.tools._learnt import NAME, read_results

    def read(data: bytes) -> None:
        (folder / NAME).write_bytes(data)
        found = read_results(folder)
        last = [(run.points[-1], target) for run in found.runs for target in found.targets]
        json.dumps([(point.mean(target), point.spread(target)) for point, target in last])

    return Reader(read, (InputError,))


def _trainlm_seeds() -> list[bytes]:
    from crawl4llm.tools._learnt import Learnt, Point, Results, results_json

    learnt = Learnt("run", {"policy": "link"}, [Point(9, 3, 3, {"t": [2.0]})], {"t": 2.5})
    return [results_json(Results({}, ["t"], [learnt])).encode()]


def _changes(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.tools.archive.folder import JOURNAL, complete

    def read(data: bytes) -> None:
        (folder / JOURNAL).write_bytes(data)
        complete(folder)

    return Reader(read, (InputError,))


def _texts(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.tools._text_sources import jsonl_texts

    path = folder / "texts.jsonl"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        for text in jsonl_texts(path, "text"):
            assert isinstance(text, str)

    return Reader(read, (InputError,))


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
    Target("seeds", _seeds, lambda: [b"# c\nhttp://a.example/ # d\nabc\n", b"\xef\xbb\xbfabc\n"], weight=0.5),
    Target("models", _models, _model_seeds, of_json),
    Target(
        *("classifiers", _classifiers),
        lambda: [b'{"topic": {"model": "topic.bin", "shares": {"__label__a": 0.25, "*": 0.75}}}'],
        of_json,
    ),
    Target("fasttext", _fasttext, _fasttext_seeds, weight=1),
    Target("contest", _contest, _contest_seeds, of_json, weight=0.5),
    Target("trainlm", _trainlm, _trainlm_seeds, of_json, weight=0.5),
    Target("changes", _changes, lambda: [b'{"new": [], "gone": []}'], of_json, weight=0.5),
    Target("texts", _texts, lambda: [b'{"text": "a"}\n\xef\xbb\xbf{"text": "b"}\n'], of_json_lines, weight=0.5),
)

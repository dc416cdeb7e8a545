"""A storage that came from somebody else: its values are checked before use, and no code runs by its names."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, crawl, error_of, scrapy

from crawl4llm import open_run
from crawl4llm.base.errors import InputError
from crawl4llm.cluster.history import History
from crawl4llm.cluster.storage import Storage, pack, sealed

SETTINGS = {"CRAWL_MAX_PAGES": 30, "CRAWL_SEEDS": 10, "SCORER": "length", "CRAWL_PARTITIONS": 2}
TRAP = "storage_trap"
PLACES: dict[str, list[Any]] = {
    "archive.prefix": ["../../escaped", "/tmp/escaped", "", "a/b", "a\0b", "a\r\nb", "x" * 300, 7, None],
    "archive.start_date": ["2022-08-01T00:00:00Z\r\nWARC-Type: response", "2022-13-01T00:00:00Z", "today", "", 5],
    "archive.fields": [{"software": "x\r\ny: z"}, {"a\r\nb": "c"}, {"software": "x" * 100_000}, {"n": 10**400}, []],
    "identity.CRAWL_PARTITIONS": [0, -1, 65_537, 30_000_000, 10**18, 10**30, 2.0, True, "2"],
    "identity.CRAWL_MAX_PAGES": [0, -1, 2**63, None],
    "identity.CRAWL_BATCH_SIZE": [-1, 2**63, None],
    "facts.crawl_id": ["", "1", "../x", "urn:\n" + "0" * 32],
    "facts.policy": ["a\nb", "x" * 100_000, None],
    "facts.extractor": ["a\r\nb", 1],
    "facts.settings.URL_POLICY": ["a\0b", "x" * 100_000, None],
    "facts.settings.WARC_MAX_BYTES": [0, -5, 2**63, 1.5],
    "facts.settings.WARC_COMPRESSION": ["lzma", "../gzip", None],
    "facts.settings.WARC_ENABLED": [1, None],
    "id": ["", "../../../x", "*", "0" * 300],
    "seeds": [{"seeds/given": -1}, {"seeds/given": 10**30}, {"a\nb": 1}, []],
}
COMMANDS: dict[str, Callable[[str, Path], list[str]]] = {
    "merge": lambda url, out: ["cluster", "merge", url, "--out", str(out)],
    "merge index": lambda url, out: ["cluster", "merge", url, "--out", str(out), "--index-only"],
    "report": lambda url, _: ["report", url],
    "export": lambda url, out: ["export", url, "--out", str(out)],
    "explain": lambda url, _: ["explain", "any", "--run", url],
    "archive check": lambda url, _: ["archive", "check", url],
    "evaluate": lambda url, out: ["evaluate", url, "--out", str(out)],
    "frontier": lambda url, _: ["frontier", url],
}


IN_BATCHES = pytest.mark.parametrize("crawled", [10], indirect=True, ids=["batches"])
"""For what is read before it matters in which order a crawl is."""


@pytest.fixture(scope="module", params=[10, 0], ids=["batches", "continuous"])
def crawled(request: pytest.FixtureRequest, demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The storage of a crawl in one order or the other."""
    folder = tmp_path_factory.mktemp("crawled")
    (folder / "storage").mkdir()
    given = {**SETTINGS, "CRAWL_BATCH_SIZE": request.param, "STORAGE": f"file://{folder / 'storage'}"}
    done = crawl(demo_web, folder / "worker", **given)
    assert done.returncode == 0, done.stderr
    return folder / "storage"


@pytest.fixture
def received(crawled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, two folders below the test's own; views of it are made in the test's folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(crawled, tmp_path / "a/b/storage")
    return tmp_path / "a/b/storage"


def change(storage: Path, place: str, value: Any) -> None:
    """Set a value of the object that says which crawl it is."""
    held = Storage(f"file://{storage}")
    crawl = held.read("crawl.json", held.get("crawl.json") or b"")
    *parents, last = place.split(".")
    inner = crawl
    for parent in parents:
        inner = inner[parent]
    inner[last] = value
    (storage / "crawl.json").write_bytes(sealed("crawl.json", pack(crawl)))


@pytest.mark.parametrize("place", PLACES)
def test_each_value_is_checked(place: str, received: Path) -> None:
    whole = (received / "crawl.json").read_bytes()
    for value in PLACES[place]:
        change(received, place, value)
        with pytest.raises(InputError, match=r"crawl\.json is (damaged: its|of another)") as raised:
            History(f"file://{received}")
        said = str(raised.value)
        assert place in said or place.split(".", maxsplit=1)[0] in said
        assert len(said) < 1000
        assert said.isprintable()
    (received / "crawl.json").write_bytes(whole)
    History(f"file://{received}")


@IN_BATCHES
@pytest.mark.parametrize("prefix", ["../../escaped", "absolute", "x" * 300, "a\0b"])
def test_a_merge_writes_nothing_elsewhere(prefix: str, received: Path, tmp_path: Path) -> None:
    change(received, "archive.prefix", str(tmp_path / "escaped") if prefix == "absolute" else prefix)
    before = sorted(tmp_path.rglob("*"))
    done = scrapy("cluster", "merge", f"file://{received}", "--out", str(received.parent / "out"))
    assert "crawl.json is damaged: its archive.prefix is" in error_of(done)
    assert sorted(tmp_path.rglob("*")) == before


@IN_BATCHES
@pytest.mark.parametrize("command", COMMANDS)
def test_no_policy_is_imported_because_a_storage_names_it(command: str, received: Path, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / f"{TRAP}.py").write_text(
        f"open({str(tmp_path / 'imported')!r}, 'w').close()\nfrom crawl4llm.policies.breadth_first import Policy\n"
    )
    env = {"PYTHONPATH": str(tmp_path / "code")}
    for name in (f"{TRAP}.Policy", f"scorer:{TRAP}.Scorer"):
        change(received, "facts.settings.URL_POLICY", name)
        done = scrapy(*COMMANDS[command](f"file://{received}", tmp_path / "out"), env=env)
        said = error_of(done)
        assert "URL_POLICY = " in said
        assert "crawl.json" in said
        assert f"-s URL_POLICY={name}" in said
        assert not (tmp_path / "imported").exists()
        with pytest.raises(InputError, match="is the path of code"):
            open_run(f"file://{received}")


def test_the_users_own_policy_is_merged_when_it_is_given(received: Path, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / f"{TRAP}.py").write_text("from crawl4llm.policies.breadth_first import Policy\n")
    change(received, "facts.settings.URL_POLICY", f"{TRAP}.Policy")
    given = ["-s", f"URL_POLICY={TRAP}.Policy"]
    env = {"PYTHONPATH": str(tmp_path / "code")}
    done = scrapy("cluster", "merge", f"file://{received}", "--out", str(tmp_path / "out"), *given, env=env)
    assert done.returncode == 0, done.stderr
    settings = json.loads((tmp_path / "out/settings.json").read_text())["settings"]
    assert settings["URL_POLICY"] == f"{TRAP}.Policy"
    done = scrapy("export", f"file://{received}", "--out", str(tmp_path / "export"), *given, env=env)
    assert done.returncode == 0, done.stderr


def test_a_crawl_does_not_begin_with_more_partitions_than_are_read(demo_web: Web, tmp_path: Path) -> None:
    (tmp_path / "storage").mkdir()
    storage = f"file://{tmp_path / 'storage'}"
    done = crawl(demo_web, tmp_path / "run", **{**SETTINGS, "STORAGE": storage, "CRAWL_PARTITIONS": 65_537})
    assert "CRAWL_PARTITIONS = '65537' must be 65,536 at most" in error_of(done)


@pytest.mark.parametrize(
    ("crawled", "kind"),
    [(10, "link"), (10, "link of the folder"), (0, "link of the folder"), (10, "FIFO"), (10, "folder")],
    indirect=["crawled"],
)
def test_an_object_that_is_no_file_of_the_storage_is_named(kind: str, received: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/crawl.json").write_bytes((received / "crawl.json").read_bytes())
    name = "crawl.json"
    path = received / name
    if kind == "link of the folder":
        path = next(one for one in (received / "i", received / "p") if one.is_dir())
        name = path.name
        path.rename(tmp_path / "outside" / path.name)
        path.symlink_to(tmp_path / "outside" / path.name)
    else:
        path.unlink()
        if kind == "link":
            path.symlink_to(tmp_path / "outside/crawl.json")
        elif kind == "FIFO":
            os.mkfifo(path)
        else:
            path.mkdir()
    url = f"file://{received}"
    for command in (["cluster", "merge", url, "--out", str(tmp_path / "out")], ["cluster", "compact", url]):
        said = error_of(scrapy(*command))
        assert f"STORAGE {url}: " in said
        assert name in said
        assert {"FIFO": "a FIFO, not a regular file", "folder": "Is a directory"}.get(kind, "by a link") in said

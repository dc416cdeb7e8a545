"""The output directory: every crawl has one of its own, and what is written there is whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from crawl4llm.base.crawl_log import CrawlLine
from crawl4llm.base.errors import InputError
from crawl4llm.base.output_dir import WRITTEN, ClaimedOutputDir, claim_output_dir
from crawl4llm.base.run_folder import write_json
from crawl4llm.crawl.page_writer import CrawlLog


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Crawls are numbered under the working directory."""
    monkeypatch.chdir(tmp_path)
    yield


def refusal(path: str | None) -> str:
    """The one line by which a directory is refused."""
    with pytest.raises(InputError) as error:
        claim_output_dir(path)
    assert "\n" not in str(error.value)
    return str(error.value)


# -- a directory of one's own -----------------------------------------------------------------------------------------


def test_crawls_are_numbered() -> None:
    assert [claim_output_dir(None) for _ in range(3)] == [Path("crawls/0001"), Path("crawls/0002"), Path("crawls/0003")]
    assert all(Path(f"crawls/000{number}").is_dir() for number in (1, 2, 3))


def test_numbers_are_not_used_again() -> None:
    for name in ("0007", "12", "notes", "0013x", "²"):
        Path("crawls", name).mkdir(parents=True)
    Path("crawls/0020").write_text("a file")
    assert claim_output_dir(None) == Path("crawls/0021")
    Path("crawls/9999").mkdir()
    assert claim_output_dir(None) == Path("crawls/10000")
    assert claim_output_dir(None) == Path("crawls/10001")


def test_crawls_that_start_at_once_have_numbers_of_their_own() -> None:
    with ThreadPoolExecutor(16) as threads:
        claimed = list(threads.map(lambda _: claim_output_dir(None), range(64)))
    assert len(set(claimed)) == 64


def test_a_directory_of_ones_choice_is_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "crawl ä"
    assert claim_output_dir(str(path)) == path
    assert path.is_dir()


def test_an_existing_directory_with_other_things_is_taken(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert claim_output_dir(str(tmp_path)) == tmp_path
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["crawl.jsonl", "settings.json", "warc"])
def test_a_directory_with_another_crawl_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("of a crawl")
    message = refusal(str(tmp_path))
    assert message.startswith(f"OUTPUT_DIR {tmp_path} holds another crawl ({name}); ")
    assert "give another directory" in message
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(str(tmp_path / "file")) == f"OUTPUT_DIR {tmp_path}/file cannot be made: File exists"
    assert refusal(str(tmp_path / "file/below")) == f"OUTPUT_DIR {tmp_path}/file/below cannot be made: Not a directory"
    assert refusal("/proc/crawl") == "OUTPUT_DIR /proc/crawl cannot be made: No such file or directory"


def test_crawls_cannot_be_numbered_where_a_file_is_in_the_way() -> None:
    Path("crawls").touch()
    assert refusal(None) == "OUTPUT_DIR crawls cannot be made: File exists"


@pytest.mark.parametrize("name", sorted({*WRITTEN} - {"crawl.jsonl", "settings.json", "warc"}))
def test_what_a_crawl_would_write_is_not_written_over(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    expected = f"OUTPUT_DIR {tmp_path} holds {name}, which a crawl would write; give another directory"
    assert refusal(str(tmp_path)) == expected
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("nowhere")
    assert refusal(str(tmp_path)) == expected


@pytest.mark.parametrize("output", [None, "new/folder", "there"])
def test_a_start_that_fails_leaves_what_was_there(tmp_path: Path, output: str | None) -> None:
    Path("there").mkdir()
    Path("there/notes.txt").write_text("mine")
    claim = ClaimedOutputDir(output)
    claimed = claim.__enter__()
    write_json(claimed / "settings.json", {"crawl_id": "1", "policy": "influence"})
    (claimed / "warc").mkdir()
    (claimed / "warc/one").touch()
    assert not claim.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    left = sorted(str(path) for path in Path().rglob("*") if path.name != "crawls")
    assert left == ["there", "there/notes.txt"]
    with ClaimedOutputDir(output) as claimed:
        write_json(claimed / "settings.json", {})
    assert (claimed / "settings.json").exists()


def test_the_errors_of_a_start_that_fails_stay(tmp_path: Path) -> None:
    for _ in range(2):
        claim = ClaimedOutputDir("new")
        claimed = claim.__enter__()
        (claimed / "seeds.txt").touch()
        (claimed / "errors.log").write_text("in full")
        assert not claim.__exit__(OSError, OSError("full"), None)
        assert [path.name for path in claimed.iterdir()] == ["errors.log"]


# -- JSON files -------------------------------------------------------------------------------------------------------


def test_json_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    write_json(path, {"first": 1, "ä": [1.5, None, True], "when": Path("a path")})
    assert json.loads(path.read_text()) == {"first": 1, "ä": [1.5, None, True], "when": "a path"}
    write_json(path, {"second": 2})
    assert path.read_text() == '{\n  "second": 2\n}\n'
    assert list(tmp_path.iterdir()) == [path]


def test_json_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^.*gone/stats.json cannot be written: No such file or directory$"):
        write_json(tmp_path / "gone/stats.json", {})
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"^.*file/stats.json cannot be written: Not a directory$"):
        write_json(tmp_path / "file/stats.json", {})
    (tmp_path / "stats.json").mkdir()
    with pytest.raises(InputError, match=r"^.*stats.json cannot be written: Is a directory$"):
        write_json(tmp_path / "stats.json", {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "stats.json"]


# -- the crawl log ----------------------------------------------------------------------------------------------------


def line(**values: Any) -> CrawlLine:
    """A line of a crawl log."""
    common: dict[str, Any] = dict.fromkeys(CrawlLine.__annotations__)
    return {**common, **values}  # type: ignore[typeddict-item]


def test_lines_are_there_as_soon_as_they_are_written(tmp_path: Path) -> None:
    log = CrawlLog(tmp_path)
    log.write([line(id="a", priority=0.1), line(id="\N{SNOWMAN}\ud800\n", priority=1e-300)], [])
    log.write([], [])
    log.write((line(id=str(number)) for number in range(2)), [])
    written = [json.loads(text) for text in (tmp_path / "crawl.jsonl").read_text().splitlines()]
    log.close()
    assert [(seen["id"], seen["priority"]) for seen in written] == [
        ("a", 0.1),
        ("\N{SNOWMAN}\ud800\n", 1e-300),
        ("0", None),
        ("1", None),
    ]
    assert {tuple(seen) for seen in written} == {tuple(CrawlLine.__annotations__)}


def test_a_log_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "crawl.jsonl"
    path.write_text("mine\n")
    with pytest.raises(InputError, match=r"crawl.jsonl exists already"):
        CrawlLog(tmp_path)
    assert path.read_text() == "mine\n"

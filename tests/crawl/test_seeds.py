"""Seeds files as people write them: what can be used is used, what cannot is counted."""

from __future__ import annotations

import gzip
import logging
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from graph_corpus import URL, GraphCorpus

from crawl4llm.base.errors import InputError
from crawl4llm.crawl.seeds import Seeds, read_seeds, sample_seeds

CORPUS = GraphCorpus({"a": [], "b": ["c"], "c": [], "d": []})
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Makes a seeds file of some content."""

    def file(content: str | bytes, name: str = "seeds.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return file


def counted(seeds: Seeds) -> dict[str, int]:
    """Counts without their prefix, and without those that are 0."""
    return {key.removeprefix("seeds/"): count for key, count in seeds.counts.items() if count}


def test_ids_one_a_line(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    seeds = read_seeds(write("c\na\nb\n"), CORPUS)
    assert seeds.keys == ["c", "a", "b"]
    assert counted(seeds) == {"given": 3}
    assert caplog.messages == []


def test_urls(write: Write) -> None:
    seeds = read_seeds(write(f"{URL}b\n{URL}a#a-place-in-it\n"), CORPUS)
    assert seeds.keys == ["b", "a"]


def test_comments_and_empty_lines(write: Write) -> None:
    content = f"# the seeds\n\n  a  # a good page\n   \n\t# b\n#c\n{URL}d#c # by its URL\n{URL}b\t#!\n"
    seeds = read_seeds(write(content), CORPUS)
    assert seeds.keys == ["a", "d", "b"]
    assert counted(seeds) == {"given": 3}


@pytest.mark.parametrize(
    "content", [b"a\nb\nd", b"a\r\nb\r\nd\r\n", b"a\rb\rd\r", b"\xef\xbb\xbfa\nb\nd\n", b"\n\na\n\n b\t\nd\n\n"]
)
@pytest.mark.parametrize("zipped", [False, True])
def test_the_same_seeds_as_other_systems_write_them(write: Write, content: bytes, zipped: bool) -> None:
    path = write(gzip.compress(content), "seeds.txt.gz") if zipped else write(content)
    seeds = read_seeds(path, CORPUS)
    assert seeds.keys == ["a", "b", "d"]
    assert counted(seeds) == {"given": 3}


def test_gzip_in_several_members(write: Write) -> None:
    assert read_seeds(write(gzip.compress(b"a\n") + gzip.compress(b"b\n"), "s.gz"), CORPUS).keys == ["a", "b"]


def test_what_cannot_be_used_is_counted(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    content = f"a\nz\nnot-an-id\na b\n{URL}nowhere\n{URL}a\nb\nb\n\xa7\nhttp://[\n"
    seeds = read_seeds(write(content), CORPUS)
    assert seeds.keys == ["a", "b"]
    assert counted(seeds) == {"given": 10, "unknown": 3, "malformed": 3, "duplicate": 2}
    (message,) = caplog.messages
    assert message.endswith("seeds.txt: not all can be used: 2 duplicate, 10 given, 3 malformed, 3 unknown")


def test_each_seed_passed_over_is_named_in_the_debug_log(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    path = write("a\n\nz\n")
    read_seeds(path, CORPUS)
    assert f"{path}:3: unknown seed z" in caplog.messages


def test_bytes_that_are_no_utf_8_cost_one_seed(write: Write) -> None:
    assert read_seeds(write(b"a\n\xff\xfe\nb\n"), CORPUS).keys == ["a", "b"]


@pytest.mark.parametrize("content", ["", "\n\n", "# a\n"])
@pytest.mark.parametrize("name", ["seeds.txt", "seeds.gz"])
def test_a_file_without_seeds(write: Write, content: str, name: str) -> None:
    path = write(gzip.compress(content.encode()) if name.endswith("gz") else content, name)
    assert refusal(path) == f"seeds file {path}: no usable seed (empty); give ids or URLs of the corpus"


def test_a_file_of_which_no_seed_is_left(write: Write) -> None:
    path = write(f"z\ny\n-\n{URL}x\n")
    tally = "4 given, 1 malformed, 3 unknown"
    assert refusal(path) == f"seeds file {path}: no usable seed ({tally}); give ids or URLs of the corpus"


DAMAGED = {
    "cut short": gzip.compress(b"a\nb\n" * 1000)[:-6],
    "cut shorter": gzip.compress(b"a\nb\n" * 1000)[:14],
    "not gzip": b"a\nb\n",
    "flipped": gzip.compress(b"a\nb\n" * 1000)[:-6] + b"\1\2\3\4\5\6",
    "flipped inside": gzip.compress(b"a\nb\n" * 1000)[:12] + b"\xff\xff\xff" + gzip.compress(b"a\nb\n" * 1000)[15:],
    "more after it": gzip.compress(b"a\nb\n") + b"no gzip",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_gzip_file(write: Write, content: bytes) -> None:
    path = write(content, "seeds.txt.gz")
    assert refusal(path).startswith(f"seeds file {path} cannot be read: ")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none") == f"seeds file {tmp_path / 'none'} cannot be read: No such file or directory"
    assert refusal(tmp_path) == f"seeds file {tmp_path} cannot be read: Is a directory"
    fifo, huge = tmp_path / "fifo", tmp_path / "huge"
    os.mkfifo(fifo)
    assert refusal(fifo) == f"seeds file {fifo} cannot be read: it is a FIFO, not a regular file"
    huge.touch()
    os.truncate(huge, 200_000_000_000)
    assert refusal(huge) == f"seeds file {huge} cannot be read: line 1 has more than 1,048,576 characters"


def refusal(path: Path) -> str:
    """The one line by which a seeds file is refused."""
    with pytest.raises(InputError) as error:
        read_seeds(path, CORPUS)
    message = str(error.value)
    assert "\n" not in message
    return message


def test_random_seeds() -> None:
    corpus = GraphCorpus({f"{number:03}": [] for number in range(200)})
    seeds = sample_seeds(corpus, 50, seed=1)
    assert len(set(seeds.keys)) == 50
    assert seeds.counts == Counter({"seeds/given": 50})
    assert seeds == sample_seeds(corpus, 50, seed=1)
    assert seeds.keys != sample_seeds(corpus, 50, seed=2).keys


def test_a_small_corpus_is_all_seeds() -> None:
    assert sorted(sample_seeds(CORPUS, 100, seed=0).keys) == ["a", "b", "c", "d"]

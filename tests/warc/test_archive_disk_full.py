"""A full disk, for real: all that was archived stays whole, the error says what happened, and room is used again."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from archive_helpers import INFO, fastwarc_records, index, warc_files, warcio_check
from crawl_helpers import python

from crawl4llm.base.files import ArchiveError
from crawl4llm.base.pages import PageRecord
from crawl4llm.warc import ArchiveWriter
from crawl4llm.warc.reader import read_record


def incompressible(number: int) -> PageRecord:
    return PageRecord(str(number), f"http://example.org/{number}", html=random.Random(number).randbytes(2500))


def fill(directory: Path, max_bytes: int, make_room: Callable[[], None]) -> tuple[int, list[str]]:
    """Archive pages until the disk is full, try once more, make room and archive 5 more; the pages kept, the errors."""
    archive = ArchiveWriter(directory, INFO, max_bytes)
    number = 0
    last = None
    errors: list[str] = []
    while number != last:
        before = archive.position()
        try:
            archive.write(incompressible(number), {"order": number})
            number += 1
        except ArchiveError as exc:
            errors.append(str(exc))
            assert archive.position().index_offset == before.index_offset
            if len(errors) == 2:
                make_room()
                last = number + 5
    archive.close()
    return number, errors


def assert_all_is_whole(directory: Path, pages: int) -> None:
    """The index leads to every page that was kept, the files hold these and no others."""
    entries = index(directory)
    assert [entry.id for entry in entries] == [str(number) for number in range(pages)]
    assert [read_record(directory, entry) for entry in entries] == [incompressible(n).html for n in range(pages)]
    files = warc_files(directory)
    assert [file.name for file in files] == list(dict.fromkeys(entry.filename for entry in entries))
    records = [record.kind for file in files for record in fastwarc_records(file)]
    assert records.count("response") == records.count("metadata") == pages
    assert len(records) == 2 * pages + len(files)
    warcio_check(files)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory on a file system of 128 KiB."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(tmp_path)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


@pytest.mark.parametrize("max_bytes", [10**9, 10_000, 1])
def test_no_space_left(small_disk: Path, max_bytes: int) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(64_000))
    directory = small_disk / "warc"
    pages, errors = fill(directory, max_bytes, ballast.unlink)
    assert pages >= 10 + 5
    for error in errors:
        assert error.startswith(f"cannot write {directory}/")
        assert error.endswith(f": {os.strerror(errno.ENOSPC)}")
    assert_all_is_whole(directory, pages)


LIMITED = """
import json, resource, sys
from pathlib import Path
from test_archive_disk_full import fill

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

limit(int(sys.argv[2]))
print(json.dumps(fill(Path(sys.argv[1]), int(sys.argv[3]), lambda: limit(resource.RLIM_INFINITY))))
"""


@pytest.mark.parametrize(
    ("limit", "max_bytes", "full", "before"),
    [
        (40_000, 10**9, "crawl-00000.warc.gz.open", 10),
        (8_000, 7_500, "index.cdxj", 10),
        (2_000, 1, "crawl-00000.warc.gz.open", 0),
    ],
)
def test_file_too_large(tmp_path: Path, limit: int, max_bytes: int, full: str, before: int) -> None:
    """A limit on the size of files stops a write in the middle: of a page, or of its line in the index."""
    directory = tmp_path / "warc"
    path = str(Path(__file__).parent)
    done = python("-c", LIMITED, directory, limit, max_bytes, env={"PYTHONPATH": path}, check=True)
    pages, errors = json.loads(done.stdout)
    assert pages >= before + 5
    assert errors == [f"cannot write {directory / full}: {os.strerror(errno.EFBIG)}"] * 2
    assert_all_is_whole(directory, pages)

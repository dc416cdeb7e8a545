"""The data files of a ClueWeb22 tree: which it holds, and whether they are whole.

A full category is some 32,000 files a kind: folders are read by a few threads, so that a slow disk's waits overlap, and
only sizes are looked at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from crawl4llm.base.errors import InputError
from crawl4llm.base.files import PreadFile
from simulate.clueweb22.records import DATA_SUFFIX, KINDS, OFFSET_SUFFIX, OFFSET_WIDTH, data_path, offset_path

_THREADS = 8
_BATCH = 500  # files that a thread checks in one go
_FILE_ID = re.compile(r"[a-z]+(?:_[a-z]+)*[0-9]{4}-[0-9]{2}")
"""Shape of a file id: ``en0041-36``, ``zh_chs0012-00``."""


class FileSizes(NamedTuple):
    """Bytes of a data file and of its offset file; None for one that is not there."""

    data: int | None
    offsets: int | None

    @property
    def records(self) -> int:
        """Number of records that can be found in the file."""
        if self.data is None or self.offsets is None:
            return 0
        return max(0, self.offsets // OFFSET_WIDTH - 1)


Listing = Mapping[str, Mapping[str, FileSizes]]
"""Files by kind and file id, both in ascending order."""


def kinds_held(root: Path) -> tuple[str, ...]:
    """Return the kinds whose folder a tree holds.

    Raises InputError for a root that is not there, is no folder, is empty, or has nothing of a ClueWeb22 tree.
    """
    try:
        names = {entry.name for entry in root.iterdir()}
    except FileNotFoundError:
        raise InputError(f"CORPUS {root}: no such folder; give the root of a ClueWeb22 tree") from None
    except NotADirectoryError:
        raise InputError(f"CORPUS {root}: not a folder; give the root of a ClueWeb22 tree") from None
    except OSError as error:
        raise InputError(f"CORPUS {root}: cannot be read ({error.strerror})") from None
    kinds = tuple(kind for kind in KINDS if kind in names and (root / kind).is_dir())
    if not kinds:
        found = "it is empty" if not names else "not a ClueWeb22 tree"
        raise InputError(f"CORPUS {root}: {found}: expected one of {', '.join(f'{kind}/' for kind in KINDS)}")
    return kinds


def list_files(root: Path, kinds: Iterable[str]) -> Listing:
    """Return the files of a tree, by their names; other files in the folders are ignored.

    Raises InputError if a folder cannot be read, or a file is a link to nothing.
    """
    listing: dict[str, dict[str, FileSizes]] = {}
    try:
        with ThreadPoolExecutor(_THREADS) as threads:
            for kind in kinds:
                streams = [stream for language in _folders(root / kind) for stream in _folders(language)]
                subdirs = [subdir for found in threads.map(_folders, streams) for subdir in found]
                files = [file for found in threads.map(_files_of, subdirs, [kind] * len(subdirs)) for file in found]
                listing[kind] = dict(sorted(files))
    except OSError as error:
        raise _unreadable(root, error) from None
    return listing


def check_files(root: Path, listing: Listing) -> None:
    """Compare each data file with its offset file.

    Raises InputError that names the first file that is missing or cut short, or the root if it holds no file.
    """
    files = [(kind, file_id, sizes) for kind, held in listing.items() for file_id, sizes in held.items()]
    if not files:
        raise InputError(f"CORPUS {root}: holds no data files; expected {data_path(Path(), KINDS[0], 'en0000-00')}")
    batches = [files[at : at + _BATCH] for at in range(0, len(files), _BATCH)]
    with ThreadPoolExecutor(_THREADS) as threads:
        try:
            found = threads.map(lambda batch: [_fault(root, *file) for file in batch], batches)
            fault = next(filter(None, chain.from_iterable(found)), None)
        except OSError as error:
            raise _unreadable(root, error) from None
    if fault:
        raise InputError(f"CORPUS {fault}; fetch it again")


def _unreadable(root: Path, error: OSError) -> InputError:
    return InputError(f"CORPUS {root}: {error.filename} cannot be read ({error.strerror})")


def _folders(path: Path) -> list[Path]:
    with os.scandir(path) as entries:
        return [Path(entry.path) for entry in entries if entry.is_dir()]


def _files_of(subdir: Path, kind: str) -> list[tuple[str, FileSizes]]:
    sizes: dict[str, dict[str, int]] = {}
    suffixes = (DATA_SUFFIX[kind], OFFSET_SUFFIX[kind])
    with os.scandir(subdir) as entries:
        for entry in entries:
            for suffix in suffixes:
                file_id = entry.name.removesuffix(suffix)
                if file_id != entry.name and _FILE_ID.fullmatch(file_id) and file_id[:-3] == subdir.name:
                    sizes.setdefault(file_id, {})[suffix] = entry.stat().st_size
    return [(file_id, FileSizes(*map(found.get, suffixes))) for file_id, found in sizes.items()]


def _fault(root: Path, kind: str, file_id: str, sizes: FileSizes) -> str | None:
    offsets = offset_path(root, kind, file_id)
    if sizes.data is None:
        return f"{data_path(root, kind, file_id)}: is missing, its offset file is there"
    if sizes.offsets is None:
        return f"{offsets}: is missing, its data file is there"
    if sizes.offsets % OFFSET_WIDTH or not sizes.offsets:
        return f"{offsets}: is cut short: {sizes.offsets} bytes are not whole lines of {OFFSET_WIDTH}"
    last_line = PreadFile(offsets).read(OFFSET_WIDTH, sizes.offsets - OFFSET_WIDTH).strip()
    if not last_line.isdigit():
        return f"{offsets}: its last line is not a number"
    if int(last_line) != sizes.data:
        data = data_path(root, kind, file_id)
        return f"{data}: {sizes.data} bytes, but its offset file ends at {int(last_line)}: one of them is cut short"
    return None

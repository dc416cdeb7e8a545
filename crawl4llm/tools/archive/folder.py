"""The folder of a dataset: its files, the crawl that may go on with them, and changes of all of them or of none.

It is a crawl's output directory or any folder of WARC files. New contents are written beside the old ones. When all are
on the disk, a journal says what goes where; then they are renamed, and the journal goes last. Killed before the journal
is there, nothing has changed; killed after, the next command that changes the folder finishes the renames.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from crawl4llm.base import crawl_log
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.files import is_written, sync_path
from crawl4llm.base.input_files import read_json as read_whole_json
from crawl4llm.base.run_folder import SETTINGS, WARC, read_json, run_of_archive, write_text
from crawl4llm.base.whole_files import replacing
from crawl4llm.base.within import fresh, require_within, within
from crawl4llm.crawl import JobDir, StoredCrawl, move_output
from crawl4llm.tools.export.folder import exclusive
from crawl4llm.tools.opened_run import refuse_storage
from crawl4llm.warc import INDEX_NAME, OPEN_SUFFIX, TEXT_INDEX_NAME, FileNames

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.warc import SeriesPosition


SORTED_INDEX = "sorted.cdxj"
"""The index in byte order, which ``finish`` writes."""
PURGED, LOST = "purged.jsonl", "lost.jsonl"
"""Logs of domains removed because they opted out, and of logged pages that ``repair`` found to be gone."""

JOURNAL = ".archive-changes.json"
_NEW = ".new"
_WARC_NAME = re.compile(rf"(.+\.warc(?:\.gz|\.zst)?)({re.escape(OPEN_SUFFIX)})?")


class Dataset:
    """The files of a dataset. Names of WARC files are paths below ``root``, without ``.open``."""

    def __init__(self, given: Path) -> None:
        """Find the files. Raises InputError if there is no dataset, or a link that leads out of it."""
        if not given.is_dir():
            raise InputError(f"{given} is no folder; give the OUTPUT_DIR of a crawl, or a folder of WARC files")
        self.given = given
        self.base, self.root = given, given / WARC
        """The folder with all that belongs to the dataset, and the folder of WARC files and indexes."""
        if not self.root.is_dir():
            run = run_of_archive(given)
            self.base, self.root = (given, given) if run is None else (run, run / WARC)
        self.log = self.base / crawl_log.NAME
        """The crawl log, which may not exist."""
        self.index = self.root / INDEX_NAME
        self.text_index = self.root / TEXT_INDEX_NAME
        self.indexes = {self.index: "contents", self.text_index: "texts"}
        """The indexes, with the view of the records in each (:mod:`crawl4llm.tools.archive.facts`)."""
        self.sorted_index = self.root / SORTED_INDEX
        others = (self.base / name for name in (PURGED, LOST, SETTINGS))
        require_within(self.base, self.root)
        self._require_files(self.log, self.index, self.text_index, self.sorted_index, *others)

    def warc_files(self) -> dict[str, Path]:
        """Return paths of the WARC files by name, numbers in names in their order.

        Raises InputError if there are none, or if such a name is no readable file of the folder.
        """
        found: dict[str, Path] = {}
        for path in self._walk(self.root):
            match = _WARC_NAME.fullmatch(path.relative_to(self.root).as_posix())
            if match is None:
                continue
            if not path.is_file():
                raise InputError(f"{path} is no file, or a dangling link; repair it, or move it away")
            odd = f"{path} has a name that is not UTF-8, which no index can hold; rename it"
            with as_input_error(odd, form="{}", errors=UnicodeEncodeError):  # by lone surrogates (PEP 383)
                match[1].encode()
            if match[1] in found:
                raise InputError(f"{path} and {found[match[1]].name} both exist; remove one of them")
            require_within(self.base, path)
            found[match[1]] = path
        if not found:
            raise InputError(f"{self.root} holds no WARC files")
        return {name: found[name] for name in sorted(found, key=natural_order)}

    def open_files(self) -> dict[str, Path]:
        """Return the WARC files that a crawl has left open, whose name ends with ``.open``, by their final names."""
        return {name: path for name, path in self.warc_files().items() if path.name.endswith(OPEN_SUFFIX)}

    def lists(self, pattern: str) -> list[Path]:
        """Return MD5 or count files, by a pattern of names. Raises InputError if one is no file, or elsewhere."""
        paths = sorted(self.root.rglob(pattern))
        self._require_files(*paths)
        return paths

    def _require_files(self, *paths: Path) -> None:
        """Raise InputError if something that is there is no file (opening a FIFO waits), or lies elsewhere."""
        require_within(self.base, *paths)
        for path in paths:
            if path.exists() and not path.is_file():
                raise InputError(f"{path} is no file; move it away")

    def _walk(self, folder: Path) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            if path.name.startswith("."):
                continue
            if path.is_dir():
                require_within(self.base, path)
                yield from self._walk(path)
            else:
                yield path


def natural_order(name: str) -> list[tuple[int, str]]:
    """Return a key to sort names by in which 10 comes after 9."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def idle_dataset(given: str, settings: BaseSettings) -> Dataset:
    """Open a dataset. Raises InputError while a crawl writes it, or holds the JOBDIR that is set."""
    refuse_storage(given)
    dataset = Dataset(Path(given))
    jobdir = settings.get("JOBDIR")
    holder = JobDir(Path(jobdir), lock=False).holder() if jobdir else None
    if holder is not None:
        raise InputError(f"JOBDIR {jobdir} is in use by process {holder}; wait until it has ended, or stop it")
    for path in (dataset.index, dataset.text_index, dataset.log, *dataset.root.rglob(f"*{OPEN_SUFFIX}")):
        if is_written(path):
            raise InputError(f"{path} is being written by a crawl; wait until it has ended, or stop it")
    return dataset


@contextmanager
def resumable(dataset: Dataset, settings: BaseSettings) -> Iterator[None]:
    """Within, files of a dataset may get shorter; a paused crawl, whose JOBDIR is set, goes on at their new ends.

    Without JOBDIR such a crawl is refused when it is resumed. Raises InputError if the JOBDIR is in use, of another
    crawl, or the files hold more than it knows of.
    """
    jobdir = settings.get("JOBDIR")
    if not jobdir:
        yield
        return
    with StoredCrawl(Path(jobdir), change=True) as crawl:
        crawl.require_begun()
        if crawl.output(settings).resolve() != dataset.base.resolve():
            raise InputError(f"{dataset.given} was not written by the crawl in JOBDIR {jobdir}")
        state = crawl.state
        for path, known in (
            (dataset.log, state.log.pages),
            (dataset.index, state.archive.index_offset),
            (dataset.text_index, state.archive.text_index_offset),
        ):
            if _size(path) > known:
                raise InputError(
                    f"{path} holds more than JOBDIR {jobdir} knows of: that crawl was killed; resume it, pause it with "
                    "Ctrl-C, then try again"
                )
        yield
        move_output(
            crawl.store,
            log=state.log._replace(pages=_size(dataset.log)),
            archive=_moved(dataset, state.archive.pages, dataset.index),
            texts=_moved(dataset, state.archive.texts, dataset.text_index),
        )
        crawl.store.commit()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _moved(dataset: Dataset, position: SeriesPosition, index: Path) -> SeriesPosition:
    last = _last_file(dataset, position, index) if position.offset else None
    return position._replace(offset=_size(last) if last else 0, index_offset=_size(index))


def _last_file(dataset: Dataset, position: SeriesPosition, index: Path) -> Path | None:
    """Return the file of a series in which the crawl would go on; None if it is gone."""
    settings = read_json(dataset.base / SETTINGS).get("settings")
    prefix = str(settings.get("WARC_PREFIX", "")) if isinstance(settings, dict) else ""
    prefix = f"{prefix}-text" if index == dataset.text_index else prefix
    for name, path in dataset.warc_files().items():
        suffix = name[name.rindex(".warc") :]
        for host in (None, ""):  # the names of a simulation, and those of a live crawl
            if FileNames(prefix, suffix, host).serial(name) == position.serial:
                return path
    return None


def now() -> str:
    """Return the time in UTC, such as ``2026-01-31T12:00:00Z``."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- changes, all or nothing -------------------------------------------------------------------------------------------


@contextmanager
def changing(folder: Path) -> Iterator[Changes]:
    """Lock a folder for changes; finish or remove the leftovers of a killed process. Raises InputError."""
    with exclusive(folder):
        complete(folder)
        with writing(folder):
            for path in folder.rglob(f".*{_NEW}"):
                path.unlink()
        changes = Changes(folder)
        try:
            yield changes
        finally:
            changes.drop()


class Changes:
    """New contents of files below a folder, of which nothing is in place before commit."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._new: dict[Path, Path] = {}
        self._gone: list[Path] = []

    def drop(self) -> None:
        """Remove what is not in place."""
        for path in self._new.values():
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def stage(self, path: Path, like: Path | None = None) -> Path:
        """Return where to write the new content of ``path``; permissions are those of ``like``, by default ``path``."""
        self._new[path] = new = _beside(path)
        with writing(path), suppress(FileNotFoundError):
            os.close(os.open(fresh(new), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            shutil.copymode(like or path, new)
        return new

    def write(self, path: Path, lines: Iterable[bytes], like: Path | None = None) -> None:
        """Stage a file with this content, as :meth:`stage` does."""
        with writing(path), self.stage(path, like).open("wb") as out:
            out.writelines(lines)

    def staged(self, path: Path) -> Path | None:
        """Return where the new content of a file lies; None if it was not staged."""
        return self._new.get(path)

    def leave(self, path: Path) -> None:
        """Keep a file that was staged as it is."""
        self._new.pop(path).unlink()

    def remove(self, path: Path) -> None:
        """Remove a file at commit."""
        self._gone.append(path)

    def commit(self) -> None:
        """Put everything in place. If that cannot be written, nothing has changed, and it raises InputError."""
        if not self._new and not self._gone:
            return
        for new in self._new.values():
            sync_path(new)
        for folder in {new.parent for new in self._new.values()}:
            sync_path(folder)
        journal = {
            "new": [[self._name(new), self._name(path)] for path, new in self._new.items()],
            "gone": [self._name(path) for path in self._gone],
        }
        write_text(self._folder / JOURNAL, json.dumps(journal), fsync=True)
        complete(self._folder)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def is_unfinished(folder: Path) -> bool:
    """Return whether a process was killed while it changed files of a folder."""
    return (folder / JOURNAL).exists()


def complete(folder: Path) -> None:
    """Put the files of a journal in place, if there is one. Raises InputError if that fails or must not be."""
    path = folder / JOURNAL
    if not is_unfinished(folder):
        return
    renamed, gone = _read_journal(path)
    with writing(folder):
        for target in renamed:
            with suppress(FileNotFoundError):  # it is in place already
                os.replace(_beside(target), target)  # noqa: PTH105 - as in appendfile, for the tests
        for target in gone:
            target.unlink(missing_ok=True)
        for parent in {target.parent for target in (*renamed, *gone)}:
            sync_path(parent)
        path.unlink()
    sync_path(folder)


def _read_journal(path: Path) -> tuple[list[Path], list[Path]]:
    """Return the files to replace and those to remove, all below the journal's folder.

    Raises InputError if the journal says anything that :class:`Changes` does not write: it may have come with the
    folder, from anywhere.
    """
    folder = path.parent
    try:
        journal = read_whole_json(path)
        pairs = [(within(folder, new, path), within(folder, name, path)) for new, name in journal["new"]]
        gone = [within(folder, name, path) for name in journal["gone"]]
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error!r:.100}); remove it, then check the dataset") from None
    if any(new != _beside(target) for new, target in pairs):
        raise InputError(f"{path} is not of a purge or repair; remove it, then check the dataset")
    return [target for _, target in pairs], gone


def _beside(path: Path) -> Path:
    """Return where new contents of a file are written."""
    return path.with_name(f".{path.name}{_NEW}")


def writing(path: Path) -> AbstractContextManager[None]:
    """Turn failures to write into InputError."""
    return as_input_error(f"{path} cannot be written")


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file for new content; it is put in place, on the disk, only when all went well."""
    with writing(path), replacing(path, _beside(path), fsync=True) as file:
        yield file

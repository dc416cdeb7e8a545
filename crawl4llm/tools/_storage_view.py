"""A crawl by several workers as a run folder, for tools that read those: logs and index; pages are in the storage."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from crawl4llm.base.command_lines import merge_command
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path
from crawl4llm.base.object_store import BUCKET_VIEWED, URL_NAME, flat_name, is_storage, views
from crawl4llm.base.run_folder import WARC
from crawl4llm.base.version import __version__
from crawl4llm.base.whole_files import locked, whole_folder, writing

if TYPE_CHECKING:
    from crawl4llm.base.received import Given
    from crawl4llm.cluster import History

_OLD: Final = 86400
"""Seconds after which a view of an earlier state of a crawl is removed."""


def run_folder(given: str, settings: Given) -> Path:
    """Return the run folder that an argument names. A storage's URL gets a view as a folder, made again whenever the
    crawl has moved on.

    ``settings`` as :func:`crawl4llm.tools._merging.merge` takes them. Raises InputError.
    """
    if not is_storage(given):
        return given_path(given)
    # obstore is an extra
    from crawl4llm.cluster import History, complaints
    from crawl4llm.crawl import REQUESTS

    url = given.rstrip("/")
    history = History(url)
    beside = [sum(1 for _ in history.storage.names(folder)) for folder in (complaints.FOLDER, REQUESTS)]
    state = [__version__, history.state(), history.end is not None, len(history.pages.compacted), beside]
    view = views() / _digest([url, history.crawl["id"]]) / _digest(state)
    if not url.startswith("file://"):
        BUCKET_VIEWED.set()
    with locked(view.parent):
        if not view.is_dir():
            with writing(view, "the view of a storage"), whole_folder(view) as folder:
                _make(history, folder, view, settings)
        for path in view.parent.iterdir():
            if path != view and path.is_dir() and path.stat().st_mtime < time.time() - _OLD:
                shutil.rmtree(path, ignore_errors=True)
    return view


def refuse_storage(given: str) -> None:
    """Raise InputError if an argument of a command that changes files names a storage."""
    if is_storage(given):
        raise InputError(f"{given}: this command does not change a storage; merge it first: {merge_command(given)}")


def _make(history: History, folder: Path, view: Path, settings: Given) -> None:
    # obstore is an extra
    from crawl4llm.tools._merging import merge

    merge(history, folder, view, settings, index_only=True, flat=True)
    (folder / URL_NAME).write_text(history.storage.url)
    (folder / WARC).mkdir(exist_ok=True)
    for part in ("i", "p", "warc"):
        for name, size in history.storage.sizes(part).items():
            if ".warc." in name:
                with (folder / WARC / flat_name(name)).open("wb") as file:
                    file.truncate(size)


def _digest(facts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

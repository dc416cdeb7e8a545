"""Object stores, a bucket or a directory by its URL, and archive files whose bytes lie in one.

A view is a folder below :func:`crawl4llm.base.input_files.views` in which such files have names and sizes of objects,
and no bytes: these are read from the storage, by ranges. Nobody but this project writes there, so that no data that one
received can have anything read from elsewhere.
"""

from __future__ import annotations

import os
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from crawl4llm.base.input_files import PreadFile, read_input, views

if TYPE_CHECKING:
    from obstore.store import ObjectStore

URL_NAME: Final = "storage-url"
"""The file of a view with the storage's URL."""
BUCKET_VIEWED: Final = Event()
"""Set once this process has read a view of a bucket: obstore's threads do not survive a fork."""
_PATIENCE: Final = timedelta(seconds=60)
"""For how long a request that fails is tried again."""
_LEAST, _MOST = 1 << 16, 1 << 23
"""Bytes of a range: of the first, and of one after many that follow each other."""


def is_storage(given: object) -> bool:
    """Return whether an argument names a storage, not a folder."""
    return str(given).startswith(("s3://", "file://"))


def open_store(url: str) -> ObjectStore:
    """Open ``s3://BUCKET/FOLDER`` or ``file:///FOLDER``. Raises what obstore does."""
    from obstore.store import LocalStore, S3Store

    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalStore(unquote(parts.path))
    endpoint = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or ""
    return S3Store.from_url(
        url,
        client_options={"allow_http": endpoint.startswith("http://"), "timeout": _PATIENCE},
        retry_config={"retry_timeout": _PATIENCE},
    )


class ObjectFile(PreadFile):
    """A file of a view, read by ranges from a bucket; a longer one each time that it is read on."""

    __slots__ = ("_ahead", "_data", "_name", "_start", "_url")

    def __init__(self, path: Path, url: str, name: str) -> None:
        """Raise OSError where the view is gone."""
        super().__init__(path)
        self._url, self._name = url, name
        self._start, self._data, self._ahead = 0, b"", _LEAST

    def read(self, size: int, position: int) -> bytes:
        """Return up to ``size`` bytes from ``position``. Raises OSError."""
        size = max(min(size, self.size - position), 0)
        start, data = self._start, self._data
        if not start <= position <= position + size <= start + len(data):
            reads_on = start <= position <= start + len(data)
            self._ahead = min(2 * self._ahead, _MOST) if reads_on else _LEAST
            start, data = position, self._get(position, min(max(size, self._ahead), self.size - position))
            self._start, self._data = start, data
        return data[position - start : position - start + size]

    def _get(self, start: int, size: int) -> bytes:
        from obstore import exceptions

        if not size:
            return b""
        try:
            return bytes(_store(os.getpid(), self._url).get_range(self._name, start=start, length=size))
        except (exceptions.BaseError, OSError) as error:
            said = " ".join(str(error).split())
            raise OSError(5, f"{self._url}/{self._name} cannot be read: {said:.200}", str(self.path)) from None


@lru_cache(maxsize=4)
def _store(_process: int, url: str) -> Any:
    return open_store(url)


def open_object(path: Path) -> PreadFile:
    """Open the object that a file of a view stands for. Raises OSError."""
    folder = views()
    crawl, state, *_ = path.relative_to(folder).parts
    url = read_input(folder / crawl / state / URL_NAME, 1 << 12).decode()
    name = path.name.replace("_", "/")
    if url.startswith("file://"):
        return PreadFile(Path(unquote(urlsplit(url).path), name))
    return ObjectFile(path, url, name)


def flat_name(name: str) -> str:
    """Return the name of the file of a view that stands for an object, in whose name is no ``_``."""
    return name.replace("/", "_")

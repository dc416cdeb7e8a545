"""Object stores (a bucket or a directory, by its URL), and archive files whose bytes lie in one.

A view is a folder below :func:`views`. Its files have names and sizes of objects, but no bytes; these are read from the
storage, by ranges. Only this project writes there, so that received data cannot make it read from elsewhere.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import timedelta
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from crawl4llm.base.files import PreadFile, check_regular
from crawl4llm.base.input_files import read_input
from crawl4llm.base.within import require_within

if TYPE_CHECKING:
    from obstore.store import ObjectStore

URL_NAME: Final = "storage-url"
"""The file of a view with the storage's URL."""
BUCKET_VIEWED: Final = Event()
"""Set once this process has read a view of a bucket, because obstore's threads do not survive a fork."""
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""Environment variables with the endpoint of a bucket, all of which obstore reads."""
_NO_URL: Final = re.compile(r"[^!-~]|[<>\"\\^`{}|]")
"""A character that no URL contains."""
_HOST: Final = re.compile(r"[a-z0-9._-]+(?<![.-])")
_NUMBER: Final = re.compile(r"\d+|0x[0-9a-f]*")
"""A last label that makes a host an IPv4 address, or invalid."""
_PATIENCE: Final = timedelta(seconds=60)
"""Time for which a failing request is repeated."""
_LEAST, _MOST = 1 << 16, 1 << 23
"""Bytes of a range: of the first, and of one after many consecutive ones."""


def is_storage(given: object) -> bool:
    """Return whether an argument names a storage, not a folder."""
    return str(given).startswith(("s3://", "file://"))


def check_object(url: str, name: str) -> None:
    """Raise InputError if an object of a directory is a link that leads out of it, or is not a regular file.

    A directory from somebody else may hold links, FIFOs and devices.
    """
    parts = urlsplit(url)
    if parts.scheme != "file":
        return
    folder = Path(unquote(parts.path))
    require_within(folder, folder / name)
    with suppress(FileNotFoundError, NotADirectoryError):
        check_regular((folder / name).stat().st_mode, folder / name)


def open_store(url: str) -> ObjectStore:
    """Open ``s3://BUCKET/FOLDER`` or ``file:///FOLDER``. Raises the errors of obstore, and ValueError for an endpoint
    at which obstore would panic."""
    from obstore.store import LocalStore, S3Store  # an extra

    parts = urlsplit(url)
    if parts.scheme == "file":
        return LocalStore(unquote(parts.path))
    return S3Store.from_url(
        url,
        client_options={"allow_http": "http" in _endpoint_schemes(), "timeout": _PATIENCE},
        retry_config={"retry_timeout": _PATIENCE},
    )


def _endpoint_schemes() -> set[str]:
    """Return the schemes of the endpoints in the environment. Raises ValueError for an endpoint that is not a URL."""
    schemes = set()
    for name, value in os.environ.items():
        if name.startswith("AWS_") and not value.isprintable():
            raise ValueError(f"the variable {name} has a character that cannot be printed, such as a line end")
    for name in _ENDPOINTS:
        if (endpoint := os.environ.get(name)) is None:
            continue
        try:
            parts = urlsplit(endpoint)
            is_url = parts.scheme in ("http", "https") and _is_host(parts.hostname or "") and parts.port != 0
        except ValueError:
            is_url = False
        if not is_url or _NO_URL.search(endpoint) or "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError(f"{name} is no URL; set it to one like http://HOST:9000 or https://HOST, or do not set it")
        schemes.add(parts.scheme)
    return schemes


def _is_host(host: str) -> bool:
    """Return whether a host is well-formed. Raises ValueError for some that are not."""
    if ":" in host or _NUMBER.fullmatch(host.rpartition(".")[2]):
        return bool(ip_address(host)) and "%" not in host
    return _HOST.fullmatch(host) is not None and bool(host.encode().decode("idna"))


class ObjectFile(PreadFile):
    """A file of a view, read by ranges from a bucket; consecutive reads take longer ranges."""

    __slots__ = ("_ahead", "_data", "_name", "_start", "_url")

    def __init__(self, path: Path, url: str, name: str) -> None:
        """Raise OSError if the view is gone."""
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
        from obstore import exceptions  # an extra

        if not size:
            return b""
        try:
            return bytes(_store(os.getpid(), self._url).get_range(self._name, start=start, length=size))
        except (exceptions.BaseError, OSError, ValueError) as error:
            said = " ".join(str(error).split())
            raise OSError(5, f"{self._url}/{self._name} cannot be read: {said:.200}", str(self.path)) from None


@lru_cache(maxsize=4)
def _store(_process: int, url: str) -> Any:
    return open_store(url)


def views() -> Path:
    """Return the folder of the views of storages."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "crawl4llm", "storages")


def open_archive_file(path: Path) -> PreadFile:
    """Open a file for reading, or the object that a file of a view stands for. Raises OSError."""
    folder = views()
    if not path.is_relative_to(folder):
        return PreadFile(path)
    crawl, state, *_ = path.relative_to(folder).parts
    url = read_input(folder / crawl / state / URL_NAME, 1 << 12).decode()
    name = path.name.replace("_", "/")
    check_object(url, name)
    if url.startswith("file://"):
        return PreadFile(Path(unquote(urlsplit(url).path), name))
    return ObjectFile(path, url, name)


def flat_name(name: str) -> str:
    """Return the name of the file of a view that stands for an object; object names contain no ``_``."""
    return name.replace("/", "_")

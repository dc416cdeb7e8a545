"""The storage of a crawl by several workers: a bucket or a directory of objects that are put once and never changed.

Segments of the archive are deleted once they are compacted.

One primitive keeps it consistent: :meth:`Storage.put` makes an object unless another one has its name. It uses "if none
match" of the S3 API, or a hard link in a directory. If several workers write the same step, one wins, and the others
see its object.

Each object ends with a line that has its checksum. So whoever reads the object finds one flipped bit, a cut end, or
another object's content. Only WARC files are put as they are: their names have their digests.

Endpoint and credentials of a bucket are the usual variables: ``AWS_ENDPOINT_URL``, ``AWS_ACCESS_KEY_ID``,
``AWS_SECRET_ACCESS_KEY``, ``AWS_REGION``.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from crawl4llm.base.compression import inflate, plausible, zstd
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import from_json, to_json
from crawl4llm.base.installed import to_install
from crawl4llm.base.object_store import check_object, open_store
from crawl4llm.base.shapes import fits, misfit
from crawl4llm.cluster_options import storage_url
from crawl4llm.frontier import StoreError

T = TypeVar("T")
_LARGEST: Final = 1 << 30
"""Bytes of an object that is read, packed or not."""
_LEVEL: Final = 3
_SEAL_BYTES: Final = 35
_AT_ONCE: Final = 8
"""Objects that are asked for at the same time."""
_PART, _PARTS_AT_ONCE = 1 << 23, 2
"""Bytes of a part of a large object that is put, and how many are on their way."""


class StorageError(InputError):
    """The storage cannot be read or written, in one line that names it."""


class Storage:
    """Objects by name, below a URL. May be used from any thread. All methods raise StorageError.

    ``puts``, ``put_bytes`` and ``gets`` count what was asked of it.
    """

    def __init__(self, url: str) -> None:
        """Open ``s3://BUCKET/FOLDER`` or ``file:///FOLDER``, which must be there; the bucket is asked at first use."""
        try:
            from obstore import exceptions  # obstore is an extra
        except ImportError:
            raise InputError(f"STORAGE needs the package obstore: {to_install('cluster')}") from None
        with as_input_error(f"STORAGE {url!r:.300}", StorageError, "{} {}", ValueError):
            storage_url(url)
        self.url = url
        self.puts = self.put_bytes = self.gets = 0
        self.checked: set[str] | None = None
        """Names of the objects whose checksums were compared, for whoever sets it."""
        self._exceptions: Any = exceptions
        self._missing = (exceptions.NotFoundError, FileNotFoundError)
        self._faults = (exceptions.BaseError, OSError)  # of Python's own it raises some too
        with self._failing("be opened"):
            self._store = open_store(url)

    def put(self, name: str, data: bytes) -> bool:
        """Make an object, with its checksum; False if there is one of that name, which stays as it is."""
        return self.put_as_is(name, sealed(name, data))

    def put_as_is(self, name: str, data: bytes) -> bool:
        """Make an object whose name has its digest; else as :meth:`put` does."""
        self.puts += 1
        self._check(name)
        with self._failing(f"take {name}"):
            try:
                self._store.put(name, data, mode="create", use_multipart=False)
            except self._exceptions.AlreadyExistsError:
                return False
        self.put_bytes += len(data)
        return True

    def put_pieces(self, name: str, size: int, pieces: Iterable[bytes]) -> None:
        """Write an object whose name is determined by its content: ``size`` bytes in pieces, which are not kept in
        memory. An object that exists is left as it is. Also raises the errors of ``pieces``."""
        if self.size(name) == size:
            return
        from obstore import open_writer  # obstore is an extra

        self.puts += 1
        self._check(name)
        with self._failing(f"take {name}"):
            writer = open_writer(self._store, name, buffer_size=_PART, max_concurrency=_PARTS_AT_ONCE)
            for piece in pieces:
                writer.write(piece)
            writer.close()  # it is there from now on; without that, never
        self.put_bytes += size

    def get(self, name: str) -> bytes | None:
        """Return the content of an object, whose checksum holds; None if the object does not exist."""
        data = self.get_as_is(name)
        return None if data is None else self.unsealed(name, data)

    def get_all(self, names: Iterable[str]) -> list[bytes]:
        """Return the content of some objects; that of one that does not exist is empty."""
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            return [data or b"" for data in threads.map(self.get, names)]

    def get_as_is(self, name: str) -> bytes | None:
        """Return all bytes of an object, unchecked; None if the object does not exist."""
        return self._ask("give", name, self._whole)

    def _whole(self, name: str) -> bytes:
        found = self._store.get(name)
        if found.meta["size"] > _LARGEST:
            raise StorageError(f"STORAGE {self.url}: {name} has {found.meta['size']:,} bytes, which is too many")
        return bytes(found.bytes())

    def get_range(self, name: str, start: int, size: int) -> bytes | None:
        """Return a part of an object; None if there is no such object."""
        get = partial(self._store.get_range, start=start, length=size)
        data = self._ask("give", name, lambda name: bytes(get(name)) if size else b"")
        if data is not None and len(data) != size:
            raise self.damaged(name)
        return data

    def size(self, name: str) -> int | None:
        """Return the bytes of an object, or None if it does not exist."""
        return self._ask("give", name, lambda name: int(self._store.head(name)["size"]))

    def delete(self, name: str) -> None:
        """Delete an object whose content is elsewhere, if it is there."""
        self._ask("delete", name, self._store.delete)

    def names(self, prefix: str, after: str = "") -> list[str]:
        """Return the names of the objects in a folder and below, in ascending order; of those behind a name only."""
        return list(self.sizes(prefix, after))

    def numbers(self, folder: str, after: str = "") -> list[int]:
        """Return the numbers with which names of objects in a folder end, in their order."""
        return [int(last) for name in self.names(folder, after) if (last := name.rpartition("/")[2]).isdecimal()]

    def sizes(self, prefix: str, after: str = "") -> dict[str, int]:
        """Return the bytes of each object, as :meth:`names` has them."""
        self.gets += 1
        with self._failing(f"list {prefix}"):
            listed = self._store.list(prefix, offset=after or None)
            return dict(sorted((one["path"], one["size"]) for some in listed for one in some))

    def folders(self, prefix: str) -> list[str]:
        """Return the names of the folders right below a folder, in ascending order."""
        self.gets += 1
        with self._failing(f"list {prefix}"):
            return sorted(self._store.list_with_delimiter(prefix)["common_prefixes"])

    def put_packed(self, name: str, content: Any) -> bool:
        """Make an object of JSON, compressed, as :meth:`put` does."""
        return self.put(name, pack(content))

    def read(self, name: str, data: bytes, shape: Any = ...) -> Any:
        """Return the content that :func:`pack` made an object of, which has this shape."""
        with self.reading(name):
            content = from_json(unpacked(data))
        if not fits([content], shape):
            raise self.damaged(name, misfit(content, shape))
        return content

    def read_if_there(self, name: str, shape: Any) -> Any:
        """Return the content of an object, or None if it does not exist."""
        data = self.get(name)
        return None if data is None else self.read(name, data, shape)

    def unsealed(self, name: str, data: bytes) -> bytes:
        """Return an object without its checksum, which holds."""
        content = data[:-_SEAL_BYTES]
        if data != sealed(name, content):
            raise self.damaged(name, "it has another checksum; it was changed, or cut short")
        if self.checked is not None:
            self.checked.add(name)
        return content

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Treat any error with the content of an object as damage of the object."""
        try:
            yield
        except StoreError:  # its advice is for a JOBDIR
            raise self.damaged(name, "one of its documents cannot be read") from None
        except _MALFORMED as error:
            said = " ".join(str(error).split())[:200]
            what = "" if isinstance(error, _SELF_SAID) else f"{type(error).__name__}: "
            raise self.damaged(name, f"{what}{said}") from None

    def damaged(self, name: str, how: str = "it is cut short") -> StorageError:
        """Return the error for an object that cannot be right."""
        return StorageError(f"STORAGE {self.url}: {name} is damaged: {how}")

    def _check(self, name: str) -> None:
        """Raise StorageError if the file with the name of an object may not be read or written."""
        with (
            as_input_error(f"STORAGE {self.url}: {name} cannot be read", StorageError),
            as_input_error(f"STORAGE {self.url}", StorageError, errors=InputError),
        ):
            check_object(self.url, name)

    def _ask(self, what: str, name: str, ask: Callable[[str], T]) -> T | None:
        """Return the answer of the store about an object; None if the object does not exist."""
        self.gets += 1
        self._check(name)
        with self._failing(f"{what} {name}"):
            try:
                return ask(name)
            except self._missing as error:
                if "NoSuchBucket" in str(error):
                    raise
        return None

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        """Turn errors of the store, which cannot do something, into StorageError."""
        try:
            yield
        except (*self._faults, ValueError, OverflowError) as error:
            raise self._error(what, error) from None

    def _error(self, what: str, error: Exception) -> StorageError:
        said = " ".join(str(error).split())
        found = next((meaning for sign, meaning in _SIGNS if sign in said), None)
        if found is None:
            refusals = self._exceptions.UnauthenticatedError, self._exceptions.PermissionDeniedError, PermissionError
            found = _REFUSED if isinstance(error, refusals) else said.partition(" Debug source")[0]
        return StorageError(f"STORAGE {self.url} cannot {what}: {found:.300}")


_REFUSED: Final = "it refuses these credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
_SIGNS: Final = (
    ("NoSuchBucket", "there is no such bucket"),
    ("No such file or directory", "there is no such directory; make it first"),
    ("Unable to canonicalize", "there is no such directory; make it first"),
    ("Read-only file system", "it is read-only"),
    ("No space left", "it is full"),
    ("Disk quota exceeded", "it is full: the disk quota is used up"),
    ("InsufficientStorage", "it is full"),
    ("QuotaExceeded", "it is full: the quota is used up"),
    ("Permission denied", "permission denied"),
    ("RequestTimeTooSkewed", "this machine's clock differs from the storage's; correct it"),
    ("403 Forbidden", _REFUSED),
    ("error sending request", "it cannot be reached (AWS_ENDPOINT_URL)"),
)


_SELF_SAID: Final = (zstd.ZstdError, ValueError, EOFError)
"""Errors whose messages say enough."""
_MALFORMED: Final = (*_SELF_SAID, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, struct.error)
"""Errors that come of reading an object with another content than its name says."""


def sealed(name: str, data: bytes) -> bytes:
    """Return an object's bytes with the line of its checksum: half of a SHA-256 digest of its name and its bytes."""
    digest = hashlib.sha256(name.encode() + b"\n")
    digest.update(data)
    return data + b"# %b\n" % digest.hexdigest()[:32].encode()


def pack(content: Any) -> bytes:
    """Return content as compressed JSON; equal content, in equal order, gives equal bytes."""
    return packed(to_json(content))


def packed(data: bytes) -> bytes:
    """Return bytes compressed."""
    return zstd.compress(data, level=_LEVEL)


def unpacked(data: bytes) -> bytes:
    """Return the bytes that were compressed. Raises InflateError if the data cannot be used."""
    return inflate(data, "zstd", min(plausible(len(data)), _LARGEST))

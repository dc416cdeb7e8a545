"""A policy's state in the store, in pieces: each is read when it is needed, and written when it has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from hashlib import blake2b
from typing import Any, Final

from crawl4llm.base.input_files import from_json, to_json
from crawl4llm.frontier import CURRENT, Store, is_document

_TABLE, PREFIX = "state", b"policy/"
_BESIDE: Final = b"\0\xff"
"""Stands between a document's key and the name of a mapping. It occurs in no text in UTF-8, and is less than any byte
that may follow a key."""
_LONGEST_NAME: Final = 400
"""Most bytes of a name in a key; of a longer name the key has that many and a hash (LMDB allows keys of 511 bytes)."""
_MOST: Final = 32_768
"""Most values in memory, for each mapping."""
_UNREAD: Final = object()
_GONE: Final = object()
"""Stands in memory for a value that the store does not hold, or will not hold after :meth:`StoredMapping.save`."""


class StoredPieces:
    """Implements :class:`crawl4llm.policies.Pieces` in a store; its commit makes :meth:`save` durable."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mappings: list[StoredMapping] = []

    def mapping(
        self, name: str, is_valid: Callable[[Any], bool], *, of_documents: bool = False, seldom_read: bool = False
    ) -> MutableMapping[str, Any]:
        stored = StoredMapping(self._store, name, is_valid, of_documents=of_documents, seldom_read=seldom_read)
        self._mappings.append(stored)
        return stored

    def save(self) -> None:
        """Write what has changed. Raises StoreError."""
        for mapping in self._mappings:
            mapping.save()


class StoredMapping(MutableMapping[str, Any]):
    """A dict of JSON values in a store. Values change by assignment, not in place.

    Recently used values are kept in memory. Reading raises StoreError if a value is damaged.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        is_valid: Callable[[Any], bool],
        *,
        of_documents: bool = False,
        seldom_read: bool = False,
    ) -> None:
        """``of_documents``: each value lies beside a document of a frontier that reranks. ``seldom_read``: values are
        not kept in memory after they are written."""
        self._store = store
        self._name = name
        self._table = CURRENT if of_documents else _TABLE
        self._prefix, self._suffix = (
            (b"", _BESIDE + name.encode()) if of_documents else (PREFIX + name.encode() + b"/", b"")
        )
        self._is_valid = is_valid
        self._seldom_read = seldom_read
        self._values: dict[str, Any] = {}
        self._changed: set[str] = set()
        self._is_whole = not any(True for _ in self._stored())
        """True if all values are in memory."""

    def get(self, name: str, default: Any = None) -> Any:
        value = self._values.get(name, _GONE if self._is_whole else _UNREAD)
        if value is _UNREAD:
            key = self._key(name)
            stored = self._store.get(self._table, key)
            value = self._values[name] = _GONE if stored is None else self._decoded(key, stored)[1]
            self._heed_most()
        return default if value is _GONE else value

    def __getitem__(self, name: str) -> Any:
        if (value := self.get(name, _GONE)) is _GONE:
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        self._values[name] = value
        self._changed.add(name)
        self._heed_most()

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self[name] = _GONE

    def __iter__(self) -> Iterator[str]:
        """Yield names, in no particular order; the mapping may not change meanwhile."""
        self.save()
        return (self._decoded(key, value)[0] for key, value in self._stored())

    def __len__(self) -> int:
        self.save()
        return sum(1 for _ in self._stored())

    def save(self) -> None:
        """Write what has changed."""
        for name in sorted(self._changed):
            key, value = self._key(name), self._values[name]
            if value is _GONE:
                self._store.delete(self._table, key)
            else:
                self._store.put(self._table, key, to_json([name, value] if self._is_long(key) else value))
        self._changed.clear()
        if self._seldom_read:
            self._forget()

    def _heed_most(self) -> None:
        if len(self._values) > _MOST:
            self.save()
            self._forget()

    def _forget(self) -> None:
        self._values.clear()
        self._is_whole = False

    def _stored(self) -> Iterator[tuple[bytes, bytes]]:
        items = self._store.behind(self._table, self._prefix)
        if not self._suffix:
            return items
        return (item for item in items if item[0].endswith(self._suffix) and not is_document(item[1]))

    def _key(self, name: str) -> bytes:
        data = name.encode("utf-8", "surrogatepass")
        if len(data) > _LONGEST_NAME:
            data = data[:_LONGEST_NAME] + blake2b(data, digest_size=16).digest()
        return self._prefix + data + self._suffix

    def _is_long(self, key: bytes) -> bool:
        """Return whether the name is too long for the key, so that it stands beside the value."""
        return len(key) > len(self._prefix) + _LONGEST_NAME + len(self._suffix)

    def _decoded(self, key: bytes, stored: bytes) -> tuple[str, Any]:
        try:
            value = from_json(stored)
            if self._is_long(key):
                name, value = value
            else:
                name = str(key[len(self._prefix) : len(key) - len(self._suffix)], "utf-8", "surrogatepass")
        except (TypeError, ValueError):
            name, value = None, None
        if not isinstance(name, str) or self._key(name) != key or not self._is_valid(value):
            raise self._store.damaged(f"{self._name} {key.hex()} of the policy is not of its kind")
        return name, value

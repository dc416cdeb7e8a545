"""The store check, in a child process, because LMDB can crash on a corrupt file."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from crawl4llm.base.processes import ChildEnded, in_child
from crawl4llm.frontier import TABLES, DurableVisited, Store, StoreError, stored_frontier

logger = logging.getLogger(__name__)

ID = b"id"
"""Key of the crawl's id in the store."""
_HEADER_BYTES = 2 * 4096
"""LMDB begins with two meta pages."""
_READ_BYTES = 1 << 22
_ADVICE: Final = "restore JOBDIR from a backup, or begin a new crawl"


def check_store(path: Path, crawl_id: str, *, thorough: bool = False) -> None:
    """Read all of a store and compare the checksums; ``thorough``: check also orders, counts and references. Raises
    StoreError that names the fault."""
    size = path.stat().st_size if path.exists() else 0
    if size < _HEADER_BYTES:
        raise StoreError(f"{path} is damaged: it holds {size} bytes; {_ADVICE}")
    logger.info("Checking %s, %.1f MB", path, size / 1e6)
    try:
        in_child(_check, path, crawl_id, thorough)
    except StoreError:
        raise
    except ChildEnded as ended:
        raise StoreError(f"{path} is damaged: reading it ends a process ({ended}); {_ADVICE}") from None
    except Exception as error:  # noqa: BLE001 - whatever it is, the store is not sound
        raise StoreError(f"{path} is damaged: {error!r}; {_ADVICE}") from None


def _check(path: Path, crawl_id: str, thorough: bool) -> None:
    with path.open("rb", buffering=0) as file:  # into the page cache: LMDB would ask the disk for page after page
        while file.read(_READ_BYTES):
            pass
    store = Store(path, readonly=True)
    store.check_size()
    for table in TABLES:
        for _ in store.items(table):
            pass
    if thorough:
        stored_frontier(store).verify()
        DurableVisited(store, path, cache=1, filter_bytes=1).verify()  # the filter is not read
    if store.get("state", ID) != crawl_id.encode():
        raise store.damaged("it does not belong to job.json")

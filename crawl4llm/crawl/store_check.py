"""The store check, in a child process, because LMDB can crash on a corrupt file."""

from __future__ import annotations

import logging
import multiprocessing
import signal
from multiprocessing.connection import Connection
from pathlib import Path

from crawl4llm.frontier import TABLES, DurableVisited, Store, StoreError, stored_frontier

logger = logging.getLogger(__name__)

ID = b"id"
"""Key of the crawl's id in the store."""
_HEADER_BYTES = 2 * 4096
"""LMDB begins with two meta pages."""
_READ_BYTES = 1 << 22


def check_store(path: Path, crawl_id: str, *, thorough: bool = False) -> None:
    """Read all of a store and compare the checksums; ``thorough``: check also orders, counts and references. Raises
    StoreError that names the fault."""
    if not path.exists() or path.stat().st_size < _HEADER_BYTES:
        size = path.stat().st_size if path.exists() else 0
        advice = "restore JOBDIR from a backup, or begin a new crawl"
        raise StoreError(f"{path} is damaged: it holds {size} bytes; {advice}")
    logger.info("Checking %s, %.1f MB", path, path.stat().st_size / 1e6)
    receiver, sender = multiprocessing.Pipe(duplex=False)
    arguments = (path, crawl_id, thorough, sender)
    process = multiprocessing.get_context("fork").Process(target=_check, args=arguments, daemon=True)
    process.start()
    sender.close()
    try:
        problem = receiver.recv()
    except EOFError:
        problem = None
    process.join()
    if process.exitcode:
        how = signal.Signals(-process.exitcode).name if process.exitcode < 0 else f"status {process.exitcode}"
        problem = (
            f"{path} is damaged: reading it ends a process ({how}); restore JOBDIR from a backup, or begin a new crawl"
        )
    if problem:
        raise StoreError(problem)


def _check(path: Path, crawl_id: str, thorough: bool, problem: Connection) -> None:
    try:
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
        belongs = store.get("state", ID) == crawl_id.encode()
        problem.send(None if belongs else str(store.damaged("it does not belong to job.json")))
    except StoreError as error:
        problem.send(str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent must hear of it
        problem.send(f"{path} is damaged: {error!r}; restore JOBDIR from a backup, or begin a new crawl")

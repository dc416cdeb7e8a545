"""The URL index of a ClueWeb22 tree: finds the document at a URL.

:mod:`simulate.indexes` says what an index is. Its one table has the hash of each URL's lookup form, and the number of
the document among all of the tree, in ascending order.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.jobs import UNDIVIDED, Executor, Told, run_missing
from crawl4llm.base.sorted_file import HashTable
from crawl4llm.base.urls import lookup_form, normalise_url
from simulate import indexes
from simulate.indexes import IndexSummary, PartJob, text_hash

_FORMS, _RECORDS = "forms", "records"
"""The columns of a part: hashes, and the numbers of the records. The first is also the table of the index."""


class UrlSource(Protocol):
    """A corpus as the index needs it."""

    def url_files(self) -> list[tuple[str, str, int]]:
        """Return name, signature and number of records of each file, in corpus order; the signature changes when its
        URLs may have."""

    def urls_in(self, file: str) -> Iterator[tuple[int, str | None]]:
        """Yield record number and URL of each document of a file; None for one that cannot be read."""

    def key_at(self, number: int) -> str:
        """Return the document key of a number: records are numbered in corpus order."""

    def url(self, key: str) -> str:
        """Return the URL of a document. Raises PageError if it cannot be read."""


def filed_form(url: str) -> str:
    """Return the lookup form of the normalised URL, with http for a missing scheme: equal for two URLs of one page."""
    return lookup_form(normalise_url(url if "://" in url else f"http://{url}"))


def _digest(files: Sequence[tuple[str, str, int]]) -> str:
    """Return an index's record of the corpus state that it was made from."""
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()


class UrlIndex:
    """The URL index of a corpus, opened for look-ups.

    Raises InputError if the folder holds none, or one of another format or another corpus.
    """

    def __init__(self, folder: Path, source: UrlSource, make: str = indexes.MAKE) -> None:
        """``make``: the command that makes it, for errors."""
        manifest = indexes.read_manifest(folder, make, "URL index")
        if manifest["digest"] != _digest(source.url_files()):
            raise InputError(f"{folder}: the URL index is of another state of the corpus; run {make}")
        self._source = source
        self._documents = HashTable(indexes.open_columns(folder, manifest, make), _FORMS)

    def find(self, url: str) -> str | None:
        """Return the key of the first document, in corpus order, whose URL has the same lookup form."""
        form = filed_form(url)
        for _, number in self._documents.under(text_hash(form)):
            key = self._source.key_at(number)
            with suppress(PageError):
                if filed_form(self._source.url(key)) == form:  # another form may have the same hash
                    return key
        return None


def build_url_index(
    source: UrlSource, folder: Path, jobs: int | None = 1, executor: Executor = UNDIVIDED
) -> IndexSummary:
    """Bring the index in ``folder`` up to the state of ``source``, with ``jobs`` processes and a progress bar.

    Files are read in the tasks of ``executor``. ``source`` must be cheap to pickle and to open. Raises InputError if
    the folder cannot be written.
    """
    files = source.url_files()
    digest = _digest(files)
    parts = [PartJob(source, folder, name, signature) for name, signature, _ in files]
    starts = accumulate((records for _, _, records in files), initial=0)

    def write(_: object) -> dict[str, Any]:
        """Write the table over the parts, and return the manifest."""
        documents = sum(part.stored().column(_FORMS)[1] for part in parts)
        with indexes.new_columns(folder, digest) as (writer, scratch):
            table = indexes.TableWriter(scratch / "urls", documents)
            for part, start in zip(Progress(parts, "merging URLs", unit=" files"), starts, strict=False):
                stored = part.stored()
                table.add(stored.numbers(_FORMS), stored.numbers(_RECORDS), start)
            duplicates = table.write(writer, _FORMS)
        unreadable = sum(part.facts()["unreadable"] for part in parts)
        columns = indexes.columns_name(digest)
        return {"columns": columns, "documents": documents, "unreadable": unreadable, "duplicates": duplicates}

    manifest, read = indexes.build_index(
        folder,
        parts,
        _make_part,
        digest,
        write,
        partial(run_missing, executor=executor, processes=jobs, told=Told(" files")),
    )
    counts = {"unreadable": manifest["unreadable"]}  # documents whose records are damaged or name no URL
    return IndexSummary(manifest["documents"], manifest["duplicates"], read, len(files) - read, counts)


def _make_part(job: PartJob[UrlSource]) -> None:
    forms, records, unreadable = array("Q"), array("I"), 0
    for record, url in job.of.urls_in(job.name):
        if url is None:
            unreadable += 1
        else:
            forms.append(text_hash(filed_form(url)))
            records.append(record)
    job.write({_FORMS: forms, _RECORDS: records}, unreadable=unreadable)

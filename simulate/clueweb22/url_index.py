"""The URL index of a ClueWeb22 tree: finds the document at a URL.

:mod:`simulate.indexes` says what an index is. Its one table has the hash of each URL's lookup form, and the number of
the document among all of the tree, in ascending order.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError, PageError
from crawl4llm.base.jobs import KILLED_INDEXING, UNDIVIDED, Executor, run_missing
from crawl4llm.base.known_sets import fingerprint
from crawl4llm.base.urls import lookup_form, normalise_url
from crawl4llm.base.whole_files import write_whole
from simulate import indexes

FORMAT: Final = 4
"""Version of the index's files; an index of another one is built again."""
_FORMS, _DOCUMENTS = "forms", "documents"
_PART: Final[Mapping[str, indexes.Code]] = {_FORMS: "Q", _DOCUMENTS: "I"}
"""The columns of a part: hashes, and the numbers of the records."""
_COLUMNS: Final[Mapping[str, indexes.Code]] = {_FORMS: "Q", _DOCUMENTS: "Q"}


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


def _hash(form: str) -> int:
    return fingerprint(form.encode("utf-8", "surrogatepass"))


def _digest(files: Sequence[tuple[str, str, int]]) -> str:
    """Return an index's record of the corpus state that it was made from."""
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()


class UrlIndex:
    """The URL index of a corpus, opened for look-ups.

    Raises InputError if the folder holds none, or one of another format or another corpus.
    """

    def __init__(self, folder: Path, source: UrlSource, make: str = indexes.MAKE) -> None:
        """``make``: the command that makes it, for errors."""
        manifest = indexes.read_manifest(folder, FORMAT, make, "URL index")
        if manifest["digest"] != _digest(source.url_files()):
            raise InputError(f"{folder}: the URL index is of another state of the corpus; run {make}")
        self._source = source
        self._columns = indexes.open_columns(folder, manifest, _COLUMNS, make)

    def find(self, url: str) -> str | None:
        """Return the key of the first document, in corpus order, whose URL has the same lookup form."""
        form = filed_form(url)
        for number in self._columns.found(_FORMS, _DOCUMENTS, _hash(form)):
            key = self._source.key_at(number)
            with suppress(PageError):
                if filed_form(self._source.url(key)) == form:  # another form may have the same hash
                    return key
        return None


class IndexSummary(NamedTuple):
    """Counts of an index's entries, and of its making."""

    documents: int
    unreadable: int  # documents left out because their records are damaged or name no URL
    duplicates: int  # documents whose URL an earlier document has
    parts_read: int
    parts_kept: int  # parts that an earlier build has read


def build_url_index(source: UrlSource, folder: Path, jobs: int = 1, executor: Executor = UNDIVIDED) -> IndexSummary:
    """Bring the index in ``folder`` up to the state of ``source``, with ``jobs`` processes and a progress bar.

    Files are read in the tasks of ``executor``. ``source`` must be cheap to pickle and to open. Raises InputError if
    the folder cannot be written.
    """
    files = source.url_files()
    digest = _digest(files)
    parts = [
        indexes.PartJob(
            source, folder / "parts" / indexes.file_name(name), indexes.PartIdentity(name, signature, FORMAT), _PART
        )
        for name, signature, _ in files
    ]
    starts = list(accumulate((records for _, _, records in files), initial=0))
    manifest, read = indexes.build_index(
        folder,
        parts,
        _make_part,
        digest,
        lambda: _current_manifest(folder, digest),
        lambda _: _write_index(folder, parts, starts, digest),
        partial(run_missing, executor=executor, processes=jobs, unit=" files", killed=KILLED_INDEXING),
    )
    counts = (manifest[name] for name in IndexSummary._fields[:3])
    return IndexSummary._make([*counts, read, len(files) - read])


def _make_part(job: indexes.PartJob[UrlSource]) -> None:
    forms, records, unreadable = array("Q"), array("I"), 0
    for record, url in job.of.urls_in(job.identity.name):
        if url is None:
            unreadable += 1
        else:
            forms.append(_hash(filed_form(url)))
            records.append(record)
    write_whole(job.path, indexes.part_bytes(job.identity, {_FORMS: forms, _DOCUMENTS: records}, unreadable=unreadable))


def _current_manifest(folder: Path, digest: str) -> dict[str, Any] | None:
    """Return the manifest of the index as it stands, if it is of this state of the corpus and whole."""
    manifest = indexes.current_manifest(folder, FORMAT, digest)
    if manifest is None:
        return None
    size = sum(column.stat().st_size for column in (folder / manifest["columns"]).iterdir())
    return manifest if size == 16 * manifest["documents"] else None


def _write_index(
    folder: Path, jobs: Sequence[indexes.PartJob[UrlSource]], starts: Sequence[int], digest: str
) -> dict[str, Any]:
    """Write the table over the parts, and return the manifest."""
    from simulate.tables import TableWriter  # here: NumPy takes time to load, and few crawls make an index

    parts = [indexes.StoredPart(job.path, job.identity, job.codes) for job in jobs]
    documents = sum(part.items[_FORMS] for part in parts)
    duplicates = 0

    def count(documents_of_one_url: Sequence[int]) -> Sequence[int]:
        nonlocal duplicates
        duplicates += len(documents_of_one_url) - 1
        return documents_of_one_url

    with indexes.new_columns(folder, digest) as columns:
        table = TableWriter(columns, documents, "Q")
        for part, start in zip(Progress(parts, "merging URLs", unit=" files"), starts, strict=False):
            table.add(part.column(_FORMS), [start + record for record in part.column(_DOCUMENTS)])
        with (columns / _FORMS).open("wb") as forms, (columns / _DOCUMENTS).open("wb") as numbers:
            table.write(forms, numbers, count)
    return {
        "format": FORMAT,
        "columns": columns.stem,
        "documents": documents,
        "unreadable": sum(part.facts["unreadable"] for part in parts),
        "duplicates": duplicates,
    }

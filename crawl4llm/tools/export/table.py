"""The figures of all documents that selecting goes by, a column each: some 120 bytes a document."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import islice
from math import nan

import numpy as np

from crawl4llm.tools.evaluate.documents import Fingerprints, Floats, Integers, as_array, fingerprints
from crawl4llm.tools.export.rows import Row

_DIGEST_CHARACTERS = len("sha1:") + 32
_ROWS_AT_ONCE = 4096


class Columns:
    """Columns by document number, while they are filled."""

    def __init__(self) -> None:
        self.influence = array("d")
        self.numbers = array("q")
        self.ids, self.digests = bytearray(), bytearray()
        self.languages: dict[str | None, int] = {}
        self.reasons: dict[int, str] = {}

    def add(self, rows: Sequence[Row]) -> None:
        """Add the next documents."""
        for number, row in enumerate(rows, len(self.influence)):
            if row.reason is not None:
                self.reasons[number] = row.reason
            self.influence.append(nan if row.influence is None else row.influence)
            language = self.languages.setdefault(row.language, len(self.languages))
            self.numbers.extend((row.file, row.offset, row.words, row.text_bytes, language))
        self.ids += fingerprints(row.id for row in rows)
        self.digests += b"".join([_fitting(row.text_digest or "") for row in rows])


def _fitting(digest: str) -> bytes:
    """Of digests longer than ours the beginning tells them apart, too."""
    return digest[:_DIGEST_CHARACTERS].ljust(_DIGEST_CHARACTERS).encode("ascii", "replace")


class Table:
    """Columns by document number, all filled."""

    def __init__(self, columns: Columns) -> None:
        self.languages = columns.languages
        """The numbers of languages."""
        self.reasons = columns.reasons
        """Why documents are left out for which that is known already."""
        self.influence: Floats = np.array(columns.influence, dtype=np.float64)
        """NaN where there is none."""
        self.ids: Fingerprints = as_array(bytes(columns.ids))
        self.digests = np.frombuffer(bytes(columns.digests), dtype=f"S{_DIGEST_CHARACTERS}")
        """Of texts."""
        files, offsets, words, text_bytes, language = np.array(columns.numbers, dtype=np.int64).reshape(-1, 5).T
        self.words: Integers = words
        self.text_bytes: Integers = text_bytes
        self.language: Integers = language
        self.crawl_order: Integers = np.lexsort((offsets, files)).astype(np.int64)
        """All documents as they lie in the files."""

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Table:
        """The columns of some rows."""
        columns, remaining = Columns(), iter(rows)
        while some := list(islice(remaining, _ROWS_AT_ONCE)):
            columns.add(some)
        return cls(columns)

    def __len__(self) -> int:
        return len(self.influence)

    @property
    def best_first(self) -> Integers:
        """All documents by falling influence; equal ones in crawl order, those without any at the end."""
        ordered = np.nan_to_num(self.influence[self.crawl_order], nan=-np.inf)
        return self.crawl_order[np.argsort(-ordered, kind="stable")]

"""The preparing stage: worker processes compute the facts of a document that selecting needs and its source lacks."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crawl4llm.base.compression import compress
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import AppendFile
from crawl4llm.base.html_tree import HtmlTree
from crawl4llm.base.reasons import NO_TEXT
from crawl4llm.options import Options
from crawl4llm.optouts import from_text, said_in_tree
from crawl4llm.scoring import (
    EXTRACTORS,
    Languages,
    PageWorkers,
    Rating,
    Scorer,
    count_tokens,
    extract_text,
    linked_share,
    rate_text,
    signature_of,
)
from crawl4llm.tools.export.opt_outs import judged
from crawl4llm.tools.export.reading import Reader, as_text
from crawl4llm.tools.export.rows import (
    LISTED_ROWS,
    NUMBER,
    PREPARED_ROWS,
    SPOOL,
    TO_PREPARE,
    Row,
    RowFile,
    RowWriter,
    spool_path,
)
from crawl4llm.tools.export.selecting import KNOWN_TEXT, Wanted
from crawl4llm.tools.export.sources import SourceFile
from crawl4llm.warc import Record, StoredRecord, field_name, utf8

if TYPE_CHECKING:
    from crawl4llm.parts import KnownTexts

BLOCK = 1024
"""Documents that are prepared, and saved, at once."""

_PAYLOAD_DIGEST = field_name("WARC-Payload-Digest")
_LANGUAGES = (field_name("Language"), field_name("WARC-Identified-Content-Language"))


def scores_pages(options: Options) -> bool:
    """Return whether pages that have no influence score are given one."""
    return options.scorer_model is not None or options.scorer != "fasttext"


class Prepared(NamedTuple):
    """A row with all that selecting needs."""

    row: Row
    text: bytes | None
    """A gzip member with the text, if it had to be extracted."""


@dataclass
class Preparer:
    """A worker's settings: pickled if processes are spawned, inherited if they are forked."""

    work: Path
    files: Sequence[SourceFile]
    extractor: str
    scorer: Scorer | None
    """Scores pages that have no influence; without one they stay so."""
    wanted: Wanted
    largest: int | None
    """As for Reader."""
    languages: Languages
    """Tells the languages of pages whose archive does not."""
    known: KnownTexts | None = None
    """Texts that are left out."""

    def __post_init__(self) -> None:
        self.rows = RowFile(self.work / LISTED_ROWS)
        self.reader = Reader(self.files, self.work, self.largest)

    def load(self) -> None:
        """Load the data that processes forked later share."""
        if load := getattr(self.scorer, "load", None):
            load()

    def refuses(self, text: str, signature: bytes) -> str | None:
        """Return the reason for which a text is left out; None if it is not."""
        if not text.strip():
            return NO_TEXT
        return KNOWN_TEXT if self.known is not None and self.known.knows(text, signature) else None

    @property
    def signs(self) -> bool:
        """True if signatures of texts are needed."""
        return self.wanted.compares_texts or (self.known is not None and self.known.near)

    def __reduce__(self) -> tuple[type[Preparer], tuple[Any, ...]]:
        return Preparer, tuple(getattr(self, field.name) for field in fields(self))


def prepare(preparer: Preparer, number: int) -> Prepared:
    """Compute all of a document that selecting and writing need: the task of a worker. Raises PageError."""
    row, stored = _from_heads(preparer, preparer.rows[number])
    about = preparer.reader.about(row)
    row = judged(row, from_text(about.signals))
    row = row._replace(
        influence=row.influence if row.scored else about.influence, language=row.language or about.language
    )
    scorer = None if row.scored or row.influence is not None else preparer.scorer
    reason = row.reason or (preparer.wanted.refuses(row.influence) if scorer is None else None)
    if reason is not None:
        return Prepared(row._replace(reason=reason), None)
    html = _html(preparer, row, stored)
    page = HtmlTree(html) if html else None
    if page is not None:
        row = judged(row, said_in_tree(page, ""))
        if row.reason is not None:
            return Prepared(row, None)
    if row.text is not None:
        return Prepared(_measured(preparer, row, scorer, preparer.reader.text(row), page), None)
    data = utf8(extract_text(html, EXTRACTORS[preparer.extractor]))
    row = _measured(preparer, row, scorer, data, page)
    return Prepared(row, compress(data) if row.reason is None else None)


def _measured(preparer: Preparer, row: Row, scorer: Scorer | None, data: bytes, page: HtmlTree | None) -> Row:
    """Return the row with the measures of its text, with its score if there is a ``scorer``, or with the reason for
    leaving it out. ``data``: the text as it is stored."""
    text, encoded = as_text(data)
    signature = signature_of(text) if preparer.signs else b""
    reason = preparer.refuses(text, signature)
    if reason is None and scorer is not None:
        row = row._replace(influence=rate_text(scorer, text, row.url).score)
        reason = preparer.wanted.refuses(row.influence)
    if reason is not None:
        return row._replace(reason=reason)
    return row._replace(
        language=row.language or preparer.languages.language(text),
        text_digest="sha1:" + base64.b32encode(hashlib.sha1(data, usedforsecurity=False).digest()).decode(),
        text_bytes=len(encoded),
        words=count_tokens(text),
        link_share=None if page is None else linked_share(page, text),
        signature=signature.hex() if preparer.wanted.compares_texts else None,
    )


def _from_heads(preparer: Preparer, row: Row) -> tuple[Row, StoredRecord | None]:
    """Return the row with the values in the heads of its records, and the page's record if that was read for them."""
    if row.date is not None and row.text is not None:
        return row, None
    stored = preparer.reader.content(row)
    row = _with_heads(row, stored.record)
    if row.language is None and _text_is_apart(row):
        row = row._replace(language=_language(preparer.reader.content(_text_record(row)).record))
    return row, stored


def _text_is_apart(row: Row) -> bool:
    """Return whether the text of a page lies in a record of its own, so that the page may have HTML too."""
    return row.text is not None and (row.text[0], row.text[1]) != (row.file, row.offset)


def _html(preparer: Preparer, row: Row, stored: StoredRecord | None) -> bytes:
    """Return the HTML of a page in UTF-8, empty if it has none, for its opt-outs, its links and maybe its text."""
    if row.text is not None and not _text_is_apart(row):
        return b""
    return preparer.reader.html(stored or preparer.reader.content(row), is_html=row.text is None)


def _with_heads(row: Row, record: Record) -> Row:
    """Return the row with the values in the head of the page's record."""
    return row._replace(
        url=record.url.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        date=row.date or record.date,
        digest=row.digest or record.fields.text(_PAYLOAD_DIGEST) or None,
        language=row.language or _language(record),
    )


def _language(record: Record) -> str | None:
    return next(filter(None, map(record.fields.text, _LANGUAGES)), None)


def _text_record(row: Row) -> Row:
    """Return the row of the record that holds the text: of a WET file it has the language, the page's has not."""
    assert row.text is not None
    file, offset, length = row.text
    return row._replace(file=file, offset=offset, length=length)


class Share(NamedTuple):
    """Some of the documents that are to be prepared, by their places in TO_PREPARE: the job of a task, or all."""

    start: int
    stop: int
    spool: int = SPOOL
    """The number of its file of texts."""

    @property
    def size(self) -> int:
        """Documents."""
        return self.stop - self.start

    def rows(self, work: Path) -> Path:
        """Return the file of its rows."""
        return work / (PREPARED_ROWS if self.spool == SPOOL else f"{PREPARED_ROWS}.{self.start}")


def shares_of(documents: int, tasks: int) -> list[Share]:
    """Divide documents into ``tasks`` shares at most."""
    ends = [documents * task // tasks for task in range(tasks + 1)]
    return [Share(*place, SPOOL - 1 - task) for task, place in enumerate(pairwise(ends)) if place[0] < place[1]]


@dataclass(frozen=True)
class Preparing:
    """The preparing of shares. Pickled for tasks."""

    preparer: Preparer
    processes: int

    def is_done(self, share: Share) -> bool:
        """Return whether the rows of a share are all there."""
        rows = share.rows(self.preparer.work)
        return rows.exists() and len(RowFile(rows)) == share.size

    def do(self, shares: Sequence[Share]) -> Iterator[None]:
        """Prepare shares."""
        for share in shares:
            for _ in self.documents(share):
                pass
            yield

    def documents(self, share: Share) -> Iterator[int]:
        """Write the rows of a share; texts that had to be extracted go to its spool.

        The work of an earlier process is kept. Yields how many documents are done, first those. Raises InputError.
        """
        preparer, rows = self.preparer, share.rows(self.preparer.work)
        to_prepare = np.fromfile(preparer.work / TO_PREPARE, NUMBER, share.size, offset=share.start * NUMBER.itemsize)
        if to_prepare.max(initial=0) >= len(RowFile(preparer.work / LISTED_ROWS)):
            raise InputError(
                f"{preparer.work / TO_PREPARE} is damaged: it names rows that are not listed; remove "
                f"{preparer.work.parent}, and export again"
            )
        done = len(RowFile(rows)) if rows.exists() else 0
        yield done
        if done == share.size:
            return
        texts = AppendFile(spool_path(preparer.work, share.spool), at=_spooled(rows) if done else 0)
        with (
            PageWorkers(preparer, self.processes) as workers,
            closing(RowWriter(rows, at=done)) as writer,
        ):
            workers.start()
            for start in range(done, share.size, BLOCK):
                numbers = to_prepare[start : start + BLOCK].tolist()
                answers = workers.run_all(prepare, numbers)
                saved = [_save(preparer, *answer, texts, share.spool) for answer in zip(numbers, answers, strict=True)]
                texts.sync()
                writer.append(saved)
                writer.sync()
                yield len(numbers)
        texts.close()


def join(work: Path, shares: Sequence[Share]) -> None:
    """Put the rows of all shares, which are consecutive, into the file of the prepared rows; texts stay in their files.

    Rows of an earlier process stay.
    """
    rows = Share(0, 0).rows(work)
    done = len(RowFile(rows)) if rows.exists() else 0
    with closing(RowWriter(rows, at=done)) as writer:
        for share in shares:
            found = RowFile(share.rows(work))
            for start in range(max(done - share.start, 0), share.size, BLOCK):
                writer.append(list(found.several(range(start, min(start + BLOCK, share.size)))))
                writer.sync()


def _spooled(rows: Path) -> int:
    """Return the size of a spool that holds the texts of all rows that were written, and maybe some more."""
    ends = (row.text[1] + row.text[2] for row in RowFile(rows) if row.text is not None and row.text[0] <= SPOOL)
    return max(ends, default=0)


def _save(preparer: Preparer, number: int, answer: Prepared | Rating, texts: AppendFile, spool: int) -> Row:
    """Return the row of a document, whose text goes to the spool if it was extracted."""
    if isinstance(answer, Rating):
        return preparer.rows[number]._replace(reason=answer.reason)
    if answer.text is None:
        return answer.row
    return answer.row._replace(text=[spool, texts.append(answer.text), len(answer.text)])

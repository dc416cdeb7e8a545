"""The rules on single documents, which leave them out with a reason, and what worker processes compute for them.

Opt-outs come first, for a source of any kind: the signals that the archive noted with the page, and those that the
sources have heard later (:mod:`crawl4llm.optouts.heard`). The head of the page's HTML is read whatever the archive
notes. Influence, blank texts and known texts follow. The rules that compare documents are in ``selecting``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from crawl4llm import scoring
from crawl4llm.base.compression import compress
from crawl4llm.base.errors import InputError
from crawl4llm.base.html_tree import HtmlTree
from crawl4llm.base.reasons import NO_TEXT
from crawl4llm.base.whole_files import write_whole
from crawl4llm.options import Options
from crawl4llm.optouts import Heard, Said, as_text as as_field, from_text, reason_against_training, said_in_html
from crawl4llm.tools.export.documents import PREPARED, Block, Reader, Row, as_text, rows_path, texts_path, write_rows
from crawl4llm.warc import Record, StoredRecord, field_name, utf8

if TYPE_CHECKING:
    from crawl4llm.parts import KnownTexts

CRAWL, INFLUENCE = "crawl", "influence"
DUPLICATE_ID, KNOWN_TEXT, NO_INFLUENCE, BELOW = "duplicate_id", "known_text", "no_influence", "below_min_influence"
_FILES = ("tokenizer", "language_model")

_PAYLOAD_DIGEST = field_name("WARC-Payload-Digest")
_LANGUAGES = (field_name("Language"), field_name("WARC-Identified-Content-Language"))


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The choice of documents, their order, and the files' format and size."""

    format: str = "jsonl.zst"
    order: str = CRAWL
    """CRAWL: as they were crawled, sources one after the other. INFLUENCE: the best first."""
    min_influence: float | None = None
    top: int | None = None
    """Number of best documents to take."""
    top_share: float | None = None
    """This share, rounded up, of the best documents that the other rules leave."""
    oracle: bool = False
    """Only pages of the oracle set of the crawls' corpus."""
    languages: tuple[str, ...] = ()
    min_words: int | None = None
    max_words: int | None = None
    keep_duplicates: bool = False
    keep_near_duplicates: bool = False
    known: str | None = None
    """Path of a file of known texts, which are left out."""
    shard_documents: int = 100_000
    shard_bytes: int | None = None
    """Bytes of text in a file, at most; a text that is longer has a file to itself."""
    tokenizer: str | None = None
    """File of a tokenizer that counts tokens."""
    language_model: str | None = None
    """File of a fastText classifier for the language of pages whose archive names none."""

    def check(self) -> None:
        """Raise InputError if no document can fit the selection."""
        least, most = self.min_words, self.max_words
        if least is not None and most is not None and least > most:
            raise InputError(f"--min-words {least} is more than --max-words {most}; no text fits both")

    @property
    def selects_by_influence(self) -> bool:
        """True if the choice of pages depends on influence, apart from the choice between duplicates."""
        return self.min_influence is not None or bool(self.top or self.top_share or self.oracle)

    @property
    def compares_texts(self) -> bool:
        """True if texts that are nearly those of others are left out. Equal ones are nearly equal too."""
        return not (self.keep_duplicates or self.keep_near_duplicates)

    def refuses(self, influence: float | None) -> str | None:
        """Return the reason for which a page of this influence is left out, whatever the others are; else None."""
        if influence is None:
            return NO_INFLUENCE if self.selects_by_influence else None
        return BELOW if self.min_influence is not None and influence < self.min_influence else None

    def settings(self) -> Mapping[str, Any]:
        """Return all of it, for the manifest; known texts by the content of their file, not by its path."""
        given = {name: value for name, value in asdict(self).items() if name not in _FILES or value is not None}
        del given["known"]
        return {**given, "languages": list(self.languages)}


def judged(row: Row, more: Iterable[Said] = ()) -> Row:
    """Return a row with more signals noted, and with the reason for which all of them leave it out, if they do."""
    said = list(dict.fromkeys([*from_text(row.signals), *more]))
    return row._replace(signals=as_field(said), reason=reason_against_training(said)) if said else row


def judged_all(rows: Iterable[Row], heard: Heard) -> Iterator[Row]:
    """Yield rows; those that opt out get the reason, by the signals that their archive noted with them, and by those
    that the sources have heard later."""
    for row in rows:
        found = row if row.reason is not None else judged(row)
        if heard and found.reason is None:
            found = found._replace(reason=reason_against_training(heard.said(row.id, row.url, row.date or "")))
        yield found


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

    reader: Reader
    extractor: str
    scorer: scoring.Scorer | None
    """Scores pages that have no influence; without one they stay so."""
    wanted: Wanted
    languages: scoring.Languages
    """Tells the languages of pages whose archive does not."""
    known: KnownTexts | None = None
    """Texts that are left out."""

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


def prepare(preparer: Preparer, number: int) -> Prepared:
    """Compute all of a document that selecting and writing need: the task of a worker. Raises PageError."""
    row, stored = _from_heads(preparer, preparer.reader.listed(number))
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
        row = judged(row, said_in_html(html, "", page))
        if row.reason is not None:
            return Prepared(row, None)
    if row.text is not None:
        return Prepared(_measured(preparer, row, scorer, preparer.reader.text(row), page), None)
    data = utf8(scoring.extract_text(html, scoring.EXTRACTORS[preparer.extractor]))
    row = _measured(preparer, row, scorer, data, page)
    return Prepared(row, compress(data) if row.reason is None else None)


def _measured(preparer: Preparer, row: Row, scorer: scoring.Scorer | None, data: bytes, page: HtmlTree | None) -> Row:
    """Return the row with the measures of its text, with its score if there is a ``scorer``, or with the reason for
    leaving it out. ``data``: the text as it is stored."""
    text = as_text(data)
    signature = scoring.signature_of(text) if preparer.signs else b""
    reason = preparer.refuses(text, signature)
    if reason is None and scorer is not None:
        row = row._replace(influence=scoring.rate_text(scorer, text, row.url).score)
        reason = preparer.wanted.refuses(row.influence)
    if reason is not None:
        return row._replace(reason=reason)
    return row._replace(
        language=row.language or preparer.languages.language(text),
        text_digest=hashlib.sha1(data, usedforsecurity=False).hexdigest(),
        text_bytes=len(text.encode()),
        words=scoring.count_tokens(text),
        link_share=None if page is None else scoring.linked_share(page, text),
        signature=signature.hex() if preparer.wanted.compares_texts else None,
    )


def _from_heads(preparer: Preparer, row: Row) -> tuple[Row, StoredRecord | None]:
    """Return the row with the values in the heads of its records, and the page's record if that was read for them."""
    if row.digest is not None and row.text is not None:
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
        date=record.date if row.digest is None else row.date,
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


@dataclass(frozen=True)
class Preparing:
    """The preparing of blocks. Pickled for tasks."""

    preparer: Preparer
    processes: int

    def is_done(self, block: Block) -> bool:
        """Return whether a block is prepared."""
        return rows_path(self.preparer.reader.work, PREPARED, block.number).exists()

    def do(self, blocks: Sequence[Block]) -> Iterator[None]:
        """Write the rows of blocks; texts that had to be extracted go to files of their own. Raises InputError."""
        work = self.preparer.reader.work
        with scoring.PageWorkers(self.preparer, self.processes) as workers:
            workers.start()
            for block in blocks:
                answers = zip(block.numbers, workers.run_all(prepare, block.numbers), strict=True)
                texts = bytearray()
                rows = [_saved(self.preparer, block, *answer, texts) for answer in answers]
                if texts:
                    write_whole(texts_path(work, block.number), bytes(texts), "the extracted texts")
                write_rows(rows_path(work, PREPARED, block.number), rows)
                yield


def _saved(preparer: Preparer, block: Block, number: int, answer: Prepared | scoring.Rating, texts: bytearray) -> Row:
    """Return the row of a document, whose text is added to the others if it was extracted."""
    if isinstance(answer, scoring.Rating):
        return preparer.reader.listed(number)._replace(reason=answer.reason)
    if answer.text is None:
        return answer.row
    start = len(texts)
    texts += answer.text
    return answer.row._replace(text=[-1 - block.number, start, len(answer.text)])

"""Manifests of earlier builds: which page has which ClueWeb22-ID, so that a rebuild can keep it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import input_lines, parse_json
from crawl4llm.base.pages import Corpus
from simulate.clueweb22.layout import FILES_PER_SUBDIR, RECORDS_PER_FILE, SUBDIRS_PER_STREAM, DocId

FIRST_ID: Final = DocId("en", 0, 0, 0, 0)
_STREAMS: Final = 100


def next_id(document: DocId) -> DocId:
    """The id behind an id, in the next file where one is full. Raises InputError behind the last of a language."""
    language, stream, subdir, file, record = document
    carry, record = divmod(record + 1, RECORDS_PER_FILE)
    carry, file = divmod(file + carry, FILES_PER_SUBDIR)
    carry, subdir = divmod(subdir + carry, SUBDIRS_PER_STREAM)
    stream += carry
    if stream == _STREAMS:
        raise InputError(f"{document} is the last id that the layout has for language {language}")
    return DocId(language, stream, subdir, file, record)


def read_manifest(path: Path, source: Corpus) -> dict[str, str]:
    """Ids by the source's keys, from a manifest: all in memory, some 250 bytes a page.

    A line is ``{key or URL}<TAB>{id}``, or a JSON object with ``key`` or ``url`` and ``id``. A URL that is no key of
    the source is looked up there; where it leads nowhere, its id stays taken. Of several lines for one page the first
    counts, the other ids stay unused too.

    Raises InputError, naming the line, for a file of another format, an id that the layout does not have and an id that
    is given twice; and where URLs need an index that the source does not have.
    """
    ids: dict[str, str] = {}
    given: set[str] = set()
    for number, (page, new_id) in _lines(path):
        where = f"--manifest {path}: line {number}"
        if not _is_possible(new_id):
            raise InputError(f"{where}: {new_id!r} is not a ClueWeb22-ID of this layout")
        if new_id in given:
            raise InputError(f"{where}: {new_id} has been given before; an id can belong to one page only")
        given.add(new_id)
        key = page if source.is_key(page) else source.resolve(page) or page
        # What names a page that has an id already keeps its id from being given again, under its own name.
        ids.setdefault(key if key not in ids else f"{page}#{new_id}", new_id)
    return ids


def _lines(path: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    try:
        for number, line in enumerate(input_lines(path, compressed=False, newline="\n"), start=1):
            if not line.strip():
                continue
            fields = _fields(line.rstrip("\r\n"))
            if fields is None:
                raise InputError(
                    f"--manifest {path}: line {number}: expected a key or URL, a tab and a ClueWeb22-ID, "
                    'or JSON like {"url": ..., "id": ...}'
                )
            yield number, fields
    except OSError as error:
        raise InputError(f"--manifest {path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"--manifest {path}: not a text file in UTF-8") from None


def _fields(line: str) -> tuple[str, str] | None:
    if line.startswith("{"):
        try:
            found = parse_json(line)
        except ValueError:
            return None
        page, new_id = found.get("key", found.get("url")), found.get("id")
        return (page, new_id) if isinstance(page, str) and isinstance(new_id, str) else None
    fields = line.split("\t")
    return (fields[0], fields[1]) if len(fields) == 2 and all(fields) else None


def _is_possible(text: str) -> bool:
    document = DocId.parse(text)
    return document is not None and document.subdir < SUBDIRS_PER_STREAM and document.record < RECORDS_PER_FILE

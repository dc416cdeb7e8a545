"""Documents of WARC files of any origin, as a simulated crawl sees them: by an index, made where there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crawl4llm.base.errors import InputError
from crawl4llm.tools.export.rows import Row
from crawl4llm.tools.export.sources import source_file
from simulate.open import (
    DAMAGED,
    DEFAULTS,
    FAILED,
    HTML,
    NO_LENGTH,
    NO_URL,
    NOT_HTML,
    REVISIT,
    REVISITED,
    UNTYPED,
    Place,
    WarcIndex,
    build_warc_index,
    index_folder,
    is_current,
    list_files,
    points_path,
)

DUPLICATE_ID, UNREADABLE_FILE = "duplicate_id", "unreadable_file"
_LEFT_OUT = {DAMAGED, NO_LENGTH, NO_URL, NOT_HTML, UNTYPED}


class WarcSource:
    """Archive files as ``CORPUS`` names them; their texts are those of WET files, where there are any beside them.

    Of several pages with one URL the first is taken. Raises InputError where there are no files or no pages.
    """

    def __init__(self, given: str, processes: int) -> None:
        self.given = given
        self.run: Path | None = None
        self.settings: dict[str, Any] = {}
        folder = index_folder(Path(given).expanduser())
        try:
            collection = list_files(given)
            if not is_current(collection, folder, DEFAULTS):
                build_warc_index(collection, folder, DEFAULTS, processes)
        except InputError as error:
            raise InputError(str(error).removeprefix("CORPUS ")) from None
        self._index = WarcIndex(folder)
        manifest = self._index.manifest
        counts = {what: count for what, count in manifest["counts"].items() if what in _LEFT_OUT or what[:5] == "http_"}
        self.left_out = Counter(counts)
        self.left_out += Counter({DUPLICATE_ID: manifest["duplicates"], UNREADABLE_FILE: len(manifest["unreadable"])})
        names = [name for names in manifest["files"] for name in names[:2] if name]
        self._numbers = {name: number for number, name in enumerate(names)}
        self.files = [source_file(collection.root / name, points_path(folder, name), named=False) for name in names]
        self.facts: dict[str, Any] = {
            "given": given,
            "kind": "warc",
            "files": {name: file.size for name, file in zip(names, self.files, strict=True)},
        }

    def rows(self, first_file: int) -> Iterator[Row]:
        """See :meth:`crawl4llm.tools.export.sources.Source.rows`."""
        index = self._index
        documents = (index.document(position) for position in range(len(index)))
        numbers = [number for number in documents if index.kind(number) != FAILED]
        for number, following in zip(numbers, [*numbers[1:], None], strict=True):
            place = index.place(number)
            file = self._file(place, wet=False)
            next_place = None if following is None else index.place(following)
            next_at = next_place.offset if next_place and next_place.file == place.file else self.files[file].size
            text = index.text_place(number)
            text_at = None
            if index.kind(number) not in {HTML, REVISITED}:
                text_at = [first_file + file, place.offset, place.length]
            elif text.length:
                text_at = [first_file + self._file(text, wet=True), text.offset, text.length]
            key = index.key(number).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            yield Row(
                id=key,
                url=key,
                date=None,
                digest=None,
                file=first_file + file,
                offset=place.offset,
                length=place.length,
                after=max(next_at - place.offset - place.length, 0),
                text=text_at,
                reason=REVISIT if index.kind(number) == REVISITED and text_at is None else None,
            )

    def _file(self, place: Place, *, wet: bool) -> int:
        """The number of the file, or of its WET file, among those of this source."""
        return self._numbers[self._index.manifest["files"][place.file][1 if wet else 0]]

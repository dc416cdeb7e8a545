"""The output directory of an export: how it is claimed, continued, and finished.

Its files are in ``documents/``, beside the dataset card and ``manifest.json``, or beside ``work/`` until it is
finished. The files have a folder of their own because readers of pipelines take everything in a folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.received import EXPORT_FORMAT, WORK_FORMAT
from crawl4llm.base.run_folder import read_json, write_json, write_text
from crawl4llm.base.tables import Fact, Line, Part
from crawl4llm.base.within import require_all_within, within
from crawl4llm.tools.export.card import CARD, UNKNOWN_OPT_OUTS, card, unknown_opt_outs
from crawl4llm.tools.export.documents import LISTED
from crawl4llm.tools.export.formats import FORMATS
from crawl4llm.tools.export.shards import SHARDS

MANIFEST, DOCUMENTS = "manifest.json", "documents"
_WORK, _REQUEST, _MODEL, _LOCK = "work", "request.json", "model", "lock"
_MALFORMED: Final = (
    *(ArithmeticError, AssertionError, EOFError),
    *(FileNotFoundError, IsADirectoryError, NotADirectoryError, LookupError, TypeError, ValueError),
)
"""Errors that notes and tables give which somebody has changed."""
_COUNTS: Final = ("documents", "words", "text_bytes", "bytes")


class ExportFolder:
    """One export's directory. Raises InputError, naming it, if it cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.documents = path / DOCUMENTS
        self.work = path / _WORK

    def check_free(self) -> None:
        """Raise InputError if the directory holds something that is no export, or links that lead out of it."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"--out {self.path} is no directory; give another")
        try:
            os.fsencode(self.path.absolute()).decode()
        except UnicodeDecodeError:
            raise InputError(f"--out {self.path}: DuckDB takes no path that is not UTF-8; give another") from None
        require_all_within(self.path)
        if (self.path / MANIFEST).exists() or (self.work / _REQUEST).exists():
            return
        begun = {self.work, self.documents}  # by one that was killed before it had begun
        held = set(self.path.iterdir()) if self.path.is_dir() else set()
        if held - begun or (self.documents in held and any(self.documents.iterdir())):
            raise InputError(f"--out {self.path} is not empty and holds no export; give another directory")

    @contextmanager
    def claimed(self, request: Mapping[str, Any], state: Any) -> Iterator[bool]:
        """Lock this export for writing; yields whether it is finished already.

        ``request`` is what decides its content, and stands in the manifest; ``state`` says whether the sources are as
        they were when it was begun. Raises InputError if the directory holds another export, or one of sources that
        have changed, or another process is writing to it.
        """
        manifest = read_json(self.path / MANIFEST)
        if manifest:
            self._check_same(manifest, request)
            self._check_files(manifest)
            shutil.rmtree(self.work, ignore_errors=True)
            yield True
            return
        with as_input_error(f"--out {self.path} cannot be written"):
            for folder in (self.documents, self.work, self.work / SHARDS):
                folder.mkdir(parents=True, exist_ok=True)
        with exclusive(self.work, _LOCK):
            goes_on = self._take_up(request, state)
            try:
                yield False
            except _MALFORMED as error:
                if not goes_on:
                    raise
                raise InputError(
                    f"--out {self.path}: the work of an earlier process in {_WORK}/ is damaged "
                    f"({type(error).__name__}); "
                    "remove it, and export again"
                ) from None

    def _take_up(self, request: Mapping[str, Any], state: Any) -> bool:
        """Begin, or resume the work of an earlier process; return which. Raises InputError as :meth:`claimed` does."""
        begun = read_json(self.work / _REQUEST)
        if not begun or not self.facts(LISTED):
            write_json(self.work / _REQUEST, {"format": WORK_FORMAT, **request, "state": state}, fsync=True)
            return False
        self._check_same(begun, request)
        if begun["state"] != _plain(state):
            raise InputError(
                f"the sources have changed since the export in {self.path} was begun; remove it, or give another --out"
            )
        return True

    def _check_same(self, theirs: Mapping[str, Any], request: Mapping[str, Any]) -> None:
        for what, mine in _plain(request).items():
            if theirs.get(what) != mine:
                differing = _first_difference(theirs.get(what), mine)
                raise InputError(
                    f"--out {self.path} holds another export: {what}{differing}; give another directory, or remove it"
                )

    def _check_files(self, manifest: Mapping[str, Any]) -> None:
        for shard in listed_shards(self.path, manifest):
            path = self.documents / shard["name"]
            if not path.exists() or path.stat().st_size != shard["bytes"]:
                raise InputError(f"{path} is missing or was changed; remove {self.path} and export again")

    def facts(self, name: str) -> dict[str, Any]:
        """Return the facts recorded under a name; empty if there are none. After LISTED, the work depends on the
        request."""
        return read_json(self.work / f"{name}.json")

    def note(self, name: str, facts: Mapping[str, Any]) -> None:
        """Note facts for an export that goes on after a kill."""
        write_json(self.work / f"{name}.json", facts, fsync=True)

    @property
    def scored_by(self) -> str | None:
        """The digest of the model that has scored pages; None if none has."""
        return (read_json(self.path / MANIFEST) or self.facts(_MODEL)).get("model_digest")

    def check_model(self, digest: str) -> None:
        """Note the model that scores pages. Raises InputError if another one has scored some."""
        noted = self.scored_by
        if noted is None:
            self.note(_MODEL, {"model_digest": digest})
        elif noted != digest:
            raise InputError(
                f"--out {self.path} holds another export: its pages were scored by the model {noted}, and SCORER_MODEL "
                f"is {digest} now; give another directory, or remove it"
            )

    def finish(self, manifest: Mapping[str, Any], names: set[str]) -> None:
        """Remove files of other names, which an export that was killed planned; write the card and the manifest."""
        for path in self.documents.iterdir():
            if path.name not in names:
                path.unlink()
        write_text(self.path / CARD, card(manifest, self.path / MANIFEST), fsync=True)
        write_json(self.path / MANIFEST, {"format": EXPORT_FORMAT, **manifest}, fsync=True)
        shutil.rmtree(self.work, ignore_errors=True)


@contextmanager
def exclusive(folder: Path, name: str = "") -> Iterator[None]:
    """Lock the files of a folder for changes. Raises InputError if another process changes them.

    ``name``: a file in it to be locked, which is made; by default the folder is, which NFS cannot lock.
    """
    with as_input_error(f"{folder} cannot be read"):
        handle = os.open(folder / name, os.O_RDWR | os.O_CREAT if name else os.O_RDONLY, 0o666)
    try:
        with suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{folder} is being changed by another process; wait until it has ended") from None
        yield
    finally:
        os.close(handle)


def listed_shards(folder: Path, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a manifest's entries of files. Raises InputError if it is no manifest, damaged, or names other files."""
    shards = manifest.get("shards")
    if not isinstance(shards, list):
        raise InputError(f"{folder} holds no finished export; give the --out directory of `scrapy export`")
    for number, shard in enumerate(shards):
        facts: dict[str, Any] = shard if isinstance(shard, dict) else {}
        path = within(folder / DOCUMENTS, facts.get("name"), folder / MANIFEST)
        counted = all(isinstance(facts.get(name), int) for name in _COUNTS)
        if path.name.partition(".")[2] not in FORMATS or not counted:
            raise InputError(f"{folder / MANIFEST}: its shard {number} is damaged; export again")
    return shards


def counted(shards: Sequence[Mapping[str, Any]], *, tokens: bool) -> dict[str, Any]:
    """Return the counts of a manifest: the sums of those of its files. ``tokens``: whether a tokenizer counted some."""
    documents, words, size = (sum(shard[name] for shard in shards) for name in ("documents", "words", "text_bytes"))
    by_tokenizer = {"tokenizer": sum(shard["tokens"] for shard in shards)} if tokens else {}
    return {"documents": documents, "tokens": {"words": words, **by_tokenizer}, "text_bytes": size}


def _plain(value: Any) -> Any:
    """Return a value as it comes back from JSON."""
    return json.loads(json.dumps(value, default=str))


def _first_difference(theirs: Any, mine: Any) -> str:
    """Say where two values differ, in a few words."""
    if isinstance(theirs, dict) and isinstance(mine, dict):
        for name in mine:
            if theirs.get(name) != mine[name]:
                return f" {name}{_first_difference(theirs.get(name), mine[name])}"
    if isinstance(theirs, str | float | int | None) and isinstance(mine, str | float | int | None):
        return f" was {theirs!s:.100}, is {mine!s:.100} now"
    return " differ"


def report(out: Path, manifest: Mapping[str, Any], archives: Sequence[str]) -> Iterator[Part]:
    """Yield the written files of an export, the left-out documents, and the sources without opt-outs. ``archives``: the
    sources that are archives of crawls."""
    shards, left_out = manifest["shards"], manifest["left_out"]
    documents, words = manifest["documents"], manifest["tokens"]["words"]
    size = sum(shard["bytes"] for shard in shards)
    told = {"out": out, "documents": documents, "words": words, "files": len(shards), "bytes": size}
    tokens = ""
    if shards and (count := manifest["tokens"].get("tokenizer")) is not None:
        told["tokens"], tokens = count, f" ({count:,} tokens)"
    yield from (Fact(name, value, "") for name, value in told.items())
    yield Line(
        f"Wrote {documents:,} documents, {words:,} words{tokens}, to {len(shards)} files of {size:,} bytes in {out}"
    )
    yield Fact("left_out", left_out, "")
    yield from (Line(f"left out: {count:,} {reason}") for reason, count in left_out.items())
    unknown = unknown_opt_outs(manifest)
    yield Fact("opt_outs_unknown", unknown, "")
    yield from (Line(f"opt-outs unknown: {given}: {UNKNOWN_OPT_OUTS}") for given in unknown)
    if "not_indexed" in left_out:
        yield (
            "not_indexed: pages that index.cdxj does not name yet. To export them, finish the crawl or repair its "
            "archive, and export again"
        )
        yield from (f"  {command('archive', 'repair', given)}" for given in archives)

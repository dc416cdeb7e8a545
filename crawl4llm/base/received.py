"""Checks of folders from others: their JSON has the right shapes, and names no code to be run.

:data:`SHAPES` maps names of files in run folders, JOBDIRs and exports to shapes.
:func:`crawl4llm.base.run_folder.read_json` uses them. :mod:`crawl4llm.cluster.shapes` is made of the same parts.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from crawl4llm.base.command_lines import command
from crawl4llm.base.compression import COMPRESSIONS
from crawl4llm.base.errors import InputError
from crawl4llm.base.formats import require_format
from crawl4llm.base.shapes import (
    FILE_NAME,
    FLAG,
    IDENTIFIER,
    LINE,
    NAME_PART,
    NUMBER,
    If,
    Maybe,
    Where,
    fits,
    misfit,
    named,
    whole,
)
from crawl4llm.base.stats import PREFIX


def _if_there(shape: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shape of an object that may lack each of its fields."""
    return {name: If(of) for name, of in shape.items()}


FACTS: Final[dict[str, Any]] = {
    "crawl_id": IDENTIFIER,
    "policy": LINE,
    "corpus": LINE,
    "model_digest": Maybe(LINE),
    "extractor": Maybe(LINE),
}
"""The fields of settings.json that describe a crawl, if commands use them."""
ARCHIVED: Final[dict[str, Any]] = {
    "URL_POLICY": LINE,
    "WARC_ENABLED": FLAG,
    "WARC_COMPRESSION": set(COMPRESSIONS),
    "WARC_MAX_BYTES": whole(1),
}
"""Settings that are used when a crawl is put together from a storage."""
_SETTINGS: Final = {
    **ARCHIVED,
    "WARC_PREFIX": NAME_PART,
    "CRAWL_MAX_PAGES": whole(),
    "CRAWL_BATCH_SIZE": whole(),
    "QUALITY_THRESHOLD": Maybe(NUMBER),
}
_SHARD: Final = {"name": ..., "tokens": Maybe(whole()), "sha256": LINE, "languages": named({str}, whole())}


def _are_shards(shards: list[Any]) -> bool:
    """Return whether those shards that are objects fit. Others are left to the reader of an export, which names them by
    number."""
    return fits([shard for shard in shards if isinstance(shard, dict)], _if_there(_SHARD))


WRITTEN: Final = {
    "plan": LINE,
    "facts": (FILE_NAME, whole(), whole(), whole(), whole(), LINE, named({str}, whole()), Maybe(whole())),
}
"""The note about a file of an unfinished export."""
_RUN: Final = (*[whole()] * 7, Maybe(whole()))
FRONTIER: Final = {
    "order": If({str}),
    "runs": If(Maybe({"next": whole(), "runs": [_RUN]})),
    "queued": If(whole()),
    "last_token": If(whole()),
    "archived": If(whole()),
    "outcomes": If([({str}, {str}, whole())]),
}
"""The frontier's values in the store of a JOBDIR."""
_HEX: Final = Where({str}, re.compile("[0-9a-f]*").fullmatch)
_FINGERPRINTS: Final = (whole(), whole(), whole(), whole(), _HEX, [whole()], _HEX)
VISITED: Final = {
    "runs": If(Maybe({"next": whole(), "blocks": whole(), "runs": [_FINGERPRINTS]})),
    "filter": If(Maybe((whole(), _HEX))),
}
"""The visited set's values there."""
CRAWL: Final = {"crawl": If(Maybe({"counts": If(named(LINE, NUMBER))}))}
"""The crawl's own values there, if commands that only read a JOBDIR use them."""
JOB: Final = {
    "crawl_id": {str},
    "output": Where({str}, lambda path: Path(path).is_absolute() and "\0" not in path),
    "digests": {...: Maybe({str, dict})},
    "settings": named(LINE, ...),
}
"""The job.json of this version's format; of another format only the number is checked."""
SHAPES: Final[Mapping[str, Any]] = {
    "settings.json": _if_there(
        {**FACTS, "crawl_id": LINE, "versions": named(LINE, LINE), "settings": _if_there(_SETTINGS)}
    ),
    "stats.json": Where(
        {"finish_reason": If(LINE)},
        lambda stats: fits([value for key, value in stats.items() if key.startswith(PREFIX)], Maybe(NUMBER)),
    ),
    "manifest.json": _if_there(
        {
            "crawl4llm": LINE,
            "settings": named(LINE, ...),
            "sources": [named(LINE, ...)],
            "documents": whole(),
            "text_bytes": whole(),
            "shards": Where([...], _are_shards),
        }
    ),
    "request.json": {"state": ...},
    "listed.json": {
        "left_out": named(LINE, whole()),
        "left_out_languages": [{str}],
        "documents": whole(),
        "shares": whole(1, 1 << 20),
        **dict.fromkeys(("scores", "texts", "languages", "influence"), FLAG),
    },
    "unfit.json": named(Where({str}, re.compile("[0-9]{1,18}").fullmatch), LINE),
    "oracle.json": {"threshold": Maybe(NUMBER)},
    "model.json": {"model_digest": LINE},
}


RUN_FORMAT: Final = 1
"""Format of a run folder, in its settings.json."""
EXPORT_FORMAT: Final = 2
"""Format of a finished export."""
WORK_FORMAT: Final = 4
"""Format of the work folder of an unfinished export, in its request.json."""
_FORMATS: Final = {
    "settings.json": (RUN_FORMAT, ("crawl", "influence")),
    "manifest.json": (EXPORT_FORMAT, ("export", "RUN...", "--out", "DIR")),
    "request.json": (WORK_FORMAT, ("export", "RUN...", "--out", "DIR")),
}
"""Formats of files, and the commands that make them. A file without a number is not checked."""


def require_fit(path: Path, content: Any) -> None:
    """Raise InputError, naming the file, if its JSON has another format, or not the shape for its name."""
    if path.name in _FORMATS and isinstance(content, dict) and "format" in content:
        read, words = _FORMATS[path.name]
        require_format(path, content["format"], read, command(*words))
    shape = SHAPES.get(path.name)
    if shape is not None and not fits([content], shape):
        raise InputError(f"{path} is damaged: {misfit(content, shape)}; get it again from its source")


class Given(Protocol):
    """Settings that the user gave."""

    def get(self, name: str, /) -> Any:
        """Return a setting; None if it is not set."""


def refuse_code(owner: object, file: str, name: str, value: object, given: object) -> None:
    """Raise InputError if a file names code for a setting, and the user did not name the same code.

    ``given``: the user's own value, from the command line or their settings. A folder or storage may come from
    anybody, so nothing that it names is imported.
    """
    if value != given:
        advice = shlex.quote(f"{name}={value}")
        raise InputError(
            f"{owner}: {name} = {value!r:.200} in {file} is the path of code, which does not run because a file names "
            f"it; if you trust it, give it too: -s {advice:.300}"
        )

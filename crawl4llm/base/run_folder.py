"""The output directory of a crawl: ``crawl.jsonl``, ``warc/``, ``settings.json``, ``seeds.txt``, ``stats.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crawl4llm.base import crawl_log, input_files
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.received import RUN_FORMAT, require_fit
from crawl4llm.base.whole_files import replacing
from crawl4llm.base.within import require_within

SETTINGS, STATS, SEEDS, WARC = "settings.json", "stats.json", "seeds.txt", "warc"
ERRORS = "errors.log"
"""Unanticipated errors in full; missing without errors."""
LIVE = "live"
"""The name of the corpus in the settings.json of a crawl of the live web."""


def run_of_archive(folder: Path) -> Path | None:
    """Return the output directory of the crawl whose archive a folder is, also by ``.`` or by a link of another name;
    None if it is of none."""
    places = (folder.absolute(), folder.resolve())
    return next((one.parent for one in places if one.name == WARC and (one.parent / crawl_log.NAME).exists()), None)


def write_json(path: Path, content: Mapping[str, Any], *, fsync: bool = False, private: bool = False) -> None:
    """Write a JSON file as :func:`write_text` does."""
    write_text(path, json.dumps(content, indent=2, default=str) + "\n", fsync=fsync, private=private)


def write_settings(output: Path, facts: Mapping[str, Any], *, fsync: bool = False) -> None:
    """Write a run's settings.json, with the format number of the whole folder, as :func:`write_text` does."""
    write_json(output / SETTINGS, {"format": RUN_FORMAT, **facts}, fsync=fsync)


def write_text(path: Path, text: str, *, fsync: bool = False, private: bool = False) -> None:
    """Write a text file whole or not at all; if ``private``, only its owner may read it. Raises InputError."""
    mode = 0o600 if private else 0o666
    with as_input_error(f"{path} cannot be written"), replacing(path, fsync=fsync, mode=mode) as file:
        file.write(text.encode())


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of a run.

    It is empty if the file is missing or holds no JSON object, or if a link leads out of the folder. Raises InputError,
    naming the file and a field, for a value that this project never writes there.
    """
    try:
        require_within(path.parent, path)
        content = input_files.read_json(path)
    except (InputError, OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    require_fit(path, content)
    return content

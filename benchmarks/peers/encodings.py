"""Labels of encodings: the table of web-platform-tests, ``encoding/resources/encodings.js``."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.peers.results import Result
from crawl4llm.base.charsets import name_of

_TABLE = "encodings.js"


def run(folder: Path) -> list[Result]:
    """Look up each label of each table below a folder."""
    return [_labels(path) for path in sorted(folder.rglob(_TABLE)) if path.parent.name == "resources"]


def _labels(path: Path) -> Result:
    text = path.read_text()
    begin = text.index("[", text.index("encodings_table"))
    table = json.loads(text[begin : text.rindex("]") + 1])
    wanted = {
        label: encoding["name"].lower()
        for section in table
        for encoding in section["encodings"]
        for label in encoding["labels"]
    }
    wrong = [f"{label}: {name_of(label)}, not {name}" for label, name in wanted.items() if name_of(label) != name]
    return Result("web-platform-tests, labels of encodings", len(wanted) - len(wrong), 0, wrong)

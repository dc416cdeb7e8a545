"""The table of what readers make of damaged files, benchmarks/notes-damaged-files.md, is what they make of them."""

from __future__ import annotations

from pathlib import Path

from damaged_files import table

NOTES = Path(__file__).resolve().parents[2] / "benchmarks/notes-damaged-files.md"


def test_the_table_in_the_notes_is_measured() -> None:
    """With other versions of the libraries only our column is compared."""
    documented = [line for line in NOTES.read_text().splitlines() if line.startswith("|")]
    measured = table().splitlines()
    if documented[0] != measured[0]:
        documented, measured = ([line.split("|")[1::3] for line in lines[1:]] for lines in (documented, measured))
    assert measured == documented

"""What docs/paper.md and its notes say of trained models is what was measured."""

from __future__ import annotations

import json

from benchmarks.trainlm_report import MEASURED, texts


def test_the_paper_and_its_notes_show_what_was_measured() -> None:
    for path, content in texts(json.loads(MEASURED.read_text())).items():
        assert path.read_text() == content, f"{path.name}: run python -m benchmarks.trainlm --report"

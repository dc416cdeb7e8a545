"""All targets, by name."""

from __future__ import annotations

from typing import Final

from benchmarks.fuzz import archives, folders, jobdirs, known_files, pages, storages, web
from benchmarks.fuzz.target import Target

TARGETS: Final[dict[str, Target]] = {
    target.name: target
    for module in (pages, web, archives, folders, known_files, jobdirs, storages)
    for target in module.TARGETS
}

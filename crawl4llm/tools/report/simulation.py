"""The report on a simulation: it sent no requests, so only failed and dropped documents are left to report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from crawl4llm.base.run_folder import LIVE, SETTINGS, read_json
from crawl4llm.base.tables import Fact, Line, Part
from crawl4llm.base.terminal import harmless
from crawl4llm.crawl import JOB, JobDir, find_output
from crawl4llm.tools.report.refusals import refusals, set_aside

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


class Simulation(NamedTuple):
    """The files of a simulation, and its corpus as the user named it."""

    corpus: str
    output: Path
    jobdir: Path | None

    def report(self, owners: int) -> Iterator[Part]:
        """Yield a line that says what the crawl is, then failed and dropped documents by owner. Raises InputError."""
        yield Fact("simulation", self.corpus, "")
        yield Line(f"This crawl is a simulation of the corpus {self.corpus}: it sent no request to any site.")
        yield from refusals(self.output, owners, None if self.jobdir is None else set_aside(self.jobdir))


def simulation_at(path: Path, settings: BaseSettings) -> Simulation | None:
    """Return the simulation in a JOBDIR or OUTPUT_DIR; None for a live crawl, or if no file says. Raises InputError."""
    output = path
    is_job = (path / JOB).is_file()
    if is_job:
        job = JobDir(path, lock=False).job
        assert job is not None  # its file is there
        if job["digests"].get("corpus_digest") == LIVE:
            return None
        output = find_output(path, job, settings.get("OUTPUT_DIR"))
    facts = read_json(output / SETTINGS)
    corpus, given = facts.get("corpus"), facts.get("settings")
    if corpus in (None, LIVE):
        return None
    named = given.get("CORPUS") if isinstance(given, dict) else None
    return Simulation(harmless(str(named or corpus)), output, path if is_job else None)

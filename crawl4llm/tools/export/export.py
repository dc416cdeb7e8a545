"""``scrapy export``: the pipeline from sources to manifest.

Each step leaves the input of the next one in the work folder, so that a killed export continues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path
from crawl4llm.base.jobs import Executor, J, Jobs, R, Told, run_missing
from crawl4llm.base.object_store import is_storage
from crawl4llm.base.tables import Part
from crawl4llm.base.terminal import wants_bar
from crawl4llm.base.version import __version__
from crawl4llm.engine import take_over
from crawl4llm.options import Options, read_options
from crawl4llm.optouts import Heard
from crawl4llm.scoring import SCHEME, BundledLanguages, FastTextLanguages, load_extractor, load_scorer, require_library
from crawl4llm.tools._text_sources import require_package
from crawl4llm.tools.export.archive_source import ArchiveSource, open_source
from crawl4llm.tools.export.card import OPT_OUTS_KNOWN
from crawl4llm.tools.export.documents import LISTED, Reader, Row, blocks_of, write_listed
from crawl4llm.tools.export.filters import INFLUENCE, Preparer, Preparing, Wanted, judged_all, scores_pages
from crawl4llm.tools.export.folder import ExportFolder, counted, report
from crawl4llm.tools.export.formats import PARQUET, ShardFacts
from crawl4llm.tools.export.selecting import Table, oracle_threshold, unknown_language
from crawl4llm.tools.export.shards import ShardJob, Tokenizer, plan_digest, write_plan, write_shard
from crawl4llm.tools.export.sources import Source, changed_file, opt_out_notes
from simulate import largest_page

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.parts import KnownTexts


_KILLED = "a process was killed while writing; run the export again, maybe with fewer SCORING_WORKERS, to resume it"
_ROWS_AT_ONCE = 256
"""Few enough to stay in the processor's cache until they are written."""
_NOTED: Final[Mapping[str, Callable[[Row], bool]]] = {
    "scores": lambda row: row.reason is None and not row.scored,
    "texts": lambda row: row.reason is None and row.text is None,
    "languages": lambda row: row.reason is None and row.language is None,
    "influence": lambda row: row.influence is not None,
}
"""Facts that are noted if they hold of any document. The first three say what preparing has to load."""


def export(
    settings: BaseSettings, given: Sequence[str], out: Path, wanted: Wanted, tasks: int | None = None
) -> Iterator[Part]:
    """Export sources to a directory, in ``tasks`` tasks of EXECUTOR; yields lines for the user.

    Settings on the command line count, then those of the first run among the sources, then the project's. Raises
    InputError; finished work is kept, and the same export continues from there.
    """
    wanted.check()
    if wanted.format == PARQUET:
        require_package("pyarrow", "--format parquet")
    if wanted.compares_texts:
        require_library("scrapy export", "give --keep-near-duplicates")
    known = _known_texts(wanted.known) if wanted.known is not None else None
    folder = ExportFolder(out)
    folder.check_free()
    options = read_options(settings)
    executor = options.tasks(tasks)
    sources = [open_source(name, settings, max(options.workers, 1), executor) for name in given]
    taken = settings.copy()
    if run := next((source for source in sources if source.settings), None):
        take_over(taken, run.settings, run.given)
    work = _Export(taken, sources, folder, wanted, known, executor)
    with folder.claimed(work.request(), [source.files for source in sources]) as finished:
        if finished:
            work.check_model()
            yield f"{out} is finished: it holds this export already"
        else:
            yield from work.run()


def _archives(sources: Sequence[Source]) -> list[str]:
    """Return the archives of crawls among sources. A storage's is merged before it can be repaired."""
    return [source.given for source in sources if isinstance(source, ArchiveSource) and not is_storage(source.given)]


def _known_texts(path: str) -> KnownTexts:
    """Open a file of known texts. Raises InputError."""
    # few exports compare texts
    from crawl4llm.parts import KnownTexts

    known = KnownTexts(given_path(path), named="--known")
    if known.near:
        require_library("--known", "take a file made with --exact")
    return known


@dataclass
class _Export:
    """One export at work."""

    settings: BaseSettings
    sources: Sequence[Source]
    folder: ExportFolder
    wanted: Wanted
    known: KnownTexts | None
    executor: Executor
    scored_by: str | None = None
    """The digest of the model that scores pages whose source has no score of theirs."""

    def __post_init__(self) -> None:
        tokenizer, model = self.wanted.tokenizer, self.wanted.language_model
        self.options: Options = read_options(self.settings)
        files = tuple(file for source in self.sources for file in source.files)
        self.reader = Reader(files, self.folder.work, largest_page(self.settings))
        self.tokenizer = None if tokenizer is None else Tokenizer.of(tokenizer)
        self.languages = BundledLanguages() if model is None else FastTextLanguages(given_path(model))

    def request(self) -> dict[str, Any]:
        """Return all that decides the content of this export."""
        options = self.options
        files = {"tokenizer": self.tokenizer, "language_model": self.languages}
        return {
            "crawl4llm": __version__,
            "settings": {
                **self.wanted.settings(),
                **{f"{name}_digest": file.digest for name, file in files.items() if file is not None},
                **({"signatures": SCHEME} if self.wanted.compares_texts else {}),
                "text_extractor": options.text_extractor,
                "scorer": options.scorer,
                "scorer_model": options.scorer_model,
                "scorer_label": options.scorer_label,
                "download_maxsize": self.reader.largest,
            },
            **({"known_texts": f"sha256:{self.known.identity}"} if self.known else {}),
            "sources": [source.facts for source in self.sources],
        }

    def run(self) -> Iterator[Part]:
        """Run all steps but those that an earlier process has finished.

        Raises InputError, before any work if the selection does not fit the sources.
        """
        self._check_one_model()
        if self.wanted.oracle and not all(source.run for source in self.sources):
            raise InputError("--oracle is for the OUTPUT_DIRs of crawls: other sources name no corpus")
        listed = self._list()
        self._prepare(listed)
        oracle = self._oracle() if self.wanted.oracle else None
        shards, left_out = self._select_and_write(oracle, listed)
        if changed := changed_file(self.reader.files):
            raise InputError(
                f"{changed} changed while it was exported; remove {self.folder.path} and export again, once nothing "
                "writes to it"
            )
        manifest = self._manifest(shards, left_out, oracle)
        self.folder.finish(manifest, {shard.name for shard in shards})
        yield from report(self.folder.path, manifest, _archives(self.sources))

    def check_model(self) -> None:
        """Raise InputError if a finished export has scores of another model than SCORER_MODEL."""
        if self.folder.scored_by:
            self.folder.check_model(f"sha256:{load_scorer(self.options).digest}")

    # -- steps --------------------------------------------------------------------------------------------------------

    def _list(self) -> Mapping[str, Any]:
        """List all documents that are not left out at once; return the note of counts and other facts."""
        if noted := self.folder.facts(LISTED):
            return noted
        first_files = [0, *accumulate(len(source.files) for source in self.sources)]
        heard = Heard(one for source in self.sources for one in source.heard())
        sources = zip(self.sources, first_files, strict=False)
        found = chain.from_iterable(source.rows(first_file) for source, first_file in sources)
        rows = map(self._refused, judged_all(found, heard))
        left_out: Counter[str] = Counter()
        flags, languages = set[str](), set[str]()

        def staying() -> Iterator[Row]:
            with Progress[int](None, "listing", unit=" documents", bar=wants_bar(self.options.progress_bar)) as bar:
                while some := list(islice(rows, _ROWS_AT_ONCE)):
                    refused = [row for row in some if row.reason is not None]
                    left_out.update(str(row.reason) for row in refused)
                    if self.wanted.languages:
                        languages.update(row.language or "" for row in refused)
                    flags.update(what for what, holds in _NOTED.items() if what not in flags and any(map(holds, some)))
                    yield from (row for row in some if row.reason is None)
                    bar.update(len(some))

        documents = write_listed(self.folder.work, staying())
        for source in self.sources:
            left_out.update(source.left_out)
        noted = {
            "left_out": left_out,
            "left_out_languages": sorted(languages),
            "documents": documents,
            "shares": self.executor.tasks or 1,
            **{what: what in flags for what in _NOTED},
        }
        self.folder.note(LISTED, noted)
        return noted

    def _refused(self, row: Row) -> Row:
        """Return a row with the reason for which its influence leaves it out, if it is known and does."""
        if row.reason is not None or not row.scored:
            return row
        reason = self.wanted.refuses(row.influence)
        return row if reason is None else row._replace(reason=reason)

    def _prepare(self, listed: Mapping[str, Any]) -> None:
        """Prepare the listed documents."""
        options, blocks = self.options, blocks_of(listed["documents"], listed["shares"])
        if not blocks:
            return
        scorer = load_scorer(options) if listed["scores"] and scores_pages(options) else None
        if scorer is not None:
            self.scored_by = f"sha256:{scorer.digest}"
            self.folder.check_model(self.scored_by)
        self._check_one_model()
        if listed["texts"]:
            load_extractor(options.text_extractor)
        if listed["languages"]:
            self.languages.load()  # processes that are forked share it
        preparer = Preparer(self.reader, options.text_extractor, scorer, self.wanted, self.languages, self.known)
        preparing = Preparing(preparer, self.executor.processes(options.workers))
        jobs = Jobs(preparing.do, blocks, self.folder.work / "tasks", preparing.is_done)
        for _ in self._run(jobs, "preparing", 1 if self.executor.tasks is None else options.workers):
            pass

    def _select_and_write(
        self, oracle: float | None, listed: Mapping[str, Any]
    ) -> tuple[list[ShardFacts], Counter[str]]:
        """Choose documents and write them; return the files, and the counts of the others.

        A damaged page makes room for another: its duplicate, or the next best.
        """
        wanted, blocks = self.wanted, blocks_of(listed["documents"], listed["shares"])
        unfit: dict[int, str] = {int(number): reason for number, reason in self.folder.facts("unfit").items()}
        while True:
            with closing(Table(self.folder.work, blocks)) as table:
                selection = table.select(wanted, oracle, unfit)
                if fault := unknown_language([*table.languages, *listed["left_out_languages"]], wanted.languages):
                    raise InputError(fault)
                scored = listed["influence"] or table.has_influence
                if wanted.selects_by_influence and not selection.documents and not scored:
                    raise InputError("no page has an influence score to select by; set SCORER_MODEL to score them")
                plans = write_plan(self.folder.work, selection.parts, wanted.format)
            shards, found = self._write(plans)
            if not found:
                return shards, selection.left_out + Counter(listed["left_out"])
            unfit.update(found)
            self.folder.note("unfit", {str(number): reason for number, reason in unfit.items()})

    def _run(self, jobs: Jobs[J, R], label: str, processes: int) -> Iterator[tuple[J, R]]:
        told = Told(" documents", _KILLED, label, wants_bar(self.options.progress_bar))
        return run_missing(jobs, self.executor, processes, told)

    def _check_one_model(self) -> None:
        """Raise InputError if scores of several models decide: they do not compare."""
        noted = ((source.facts.get("model_digest"), source.given) for source in self.sources)
        models = {str(digest): given for digest, given in noted if digest}
        if self.scored_by is not None:
            models[self.scored_by] = "SCORER_MODEL"
        if len(models) > 1 and (self.wanted.selects_by_influence or self.wanted.order == INFLUENCE):
            first, second = [f"{given} ({digest})" for digest, given in models.items()][:2]
            raise InputError(
                f"influence scores of {first} and {second} are of different models and cannot be compared; export "
                f"them separately, or without selecting by influence"
            )

    def _oracle(self) -> float:
        noted: float | None = self.folder.facts("oracle").get("threshold")
        if noted is None:
            runs = [source.run for source in self.sources if source.run]
            noted = oracle_threshold(self.settings, runs, self.executor)
            self.folder.note("oracle", {"threshold": noted})
        return noted

    def _write(self, plans: Sequence[tuple[int, int, str]]) -> tuple[list[ShardFacts], dict[int, str]]:
        """Write the missing files; returns all files, and the unreadable documents."""
        form, documents = self.wanted.format, self.folder.documents
        width = max(5, len(str(len(plans))))
        jobs = [
            ShardJob(documents / f"{number:0{width}d}.{form}", form, *plan, self.reader, self.tokenizer)
            for number, plan in enumerate(plans)
        ]
        unfit: dict[int, str] = {}
        folder = self.folder.work / "tasks" / plan_digest("".join(job.digest for job in jobs).encode(), form)[:16]
        for _, found in self._run(Jobs(partial(map, write_shard), jobs, folder), "writing", self.options.workers):
            unfit.update((int(number), reason) for number, reason in found.items())  # results of tasks come as JSON
        return [] if unfit else [job.facts() for job in jobs], unfit

    # -- manifest -----------------------------------------------------------------------------------------------------

    def _manifest(self, shards: Sequence[ShardFacts], left_out: Counter[str], oracle: float | None) -> dict[str, Any]:
        entries = [shard.entry() for shard in shards]
        return {
            **self.request(),
            **counted(entries, tokens=self.tokenizer is not None),
            "left_out": {reason: count for reason, count in sorted(left_out.items()) if count},
            "oracle_threshold": oracle,
            "model_digest": self.scored_by,
            "opt_out": [opt_out_notes(source) for source in self.sources],
            OPT_OUTS_KNOWN: [source.knows_opt_outs for source in self.sources],
            "shards": entries,
        }

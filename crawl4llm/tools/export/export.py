"""``scrapy export``: all stages of an export, from sources to manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import AppendFile
from crawl4llm.base.input_files import given_path
from crawl4llm.base.jobs import Executor, J, Jobs, R, run_missing
from crawl4llm.base.object_store import is_storage
from crawl4llm.base.tables import Part
from crawl4llm.base.terminal import wants_bar
from crawl4llm.base.version import __version__
from crawl4llm.base.whole_files import replacing
from crawl4llm.engine import take_over
from crawl4llm.options import Options, read_options
from crawl4llm.optouts import Heard
from crawl4llm.scoring import (
    SCHEME,
    BundledLanguages,
    FastTextLanguages,
    Scorer,
    load_extractor,
    load_scorer,
    require_library,
)
from crawl4llm.tools.evaluate.documents import Integers
from crawl4llm.tools.export.archive_source import ArchiveSource, open_source
from crawl4llm.tools.export.card import OPT_OUTS_KNOWN
from crawl4llm.tools.export.folder import LISTED, ExportFolder, plan_digest, report
from crawl4llm.tools.export.formats import PARQUET, require_package
from crawl4llm.tools.export.opt_outs import judged_later
from crawl4llm.tools.export.preparing import Preparer, Preparing, Share, join, scores_pages, shares_of
from crawl4llm.tools.export.rows import (
    LISTED_ROWS,
    NUMBER,
    PREPARED_ROWS,
    TO_PREPARE,
    Columns,
    Row,
    Rows,
    RowWriter,
)
from crawl4llm.tools.export.selecting import INFLUENCE, TableInMemory, Wanted, oracle_threshold, unknown_language
from crawl4llm.tools.export.shards import PLAN, ShardFacts, ShardJob, Written, write_shard
from crawl4llm.tools.export.sources import Source, changed_file, opt_out_notes
from crawl4llm.tools.export.tokens import Tokenizer
from simulate import largest_page

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.parts import KnownTexts
    from crawl4llm.tools.export.selecting_on_disk import TableOnDisk


_KILLED = "a process was killed while writing; run the export again, maybe with fewer SCORING_WORKERS, to resume it"
_ROWS_AT_ONCE = 256
"""Few enough to stay in the processor's cache until they are written."""
_LACKING: Final[Mapping[str, Callable[[Row], bool]]] = {
    "scores": lambda row: not row.scored,
    "texts": lambda row: row.text is None,
    "languages": lambda row: row.language is None,
}
"""Values that a listed document may lack, so that something has to be loaded for it."""


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
    if tasks is not None:
        require_package("duckdb", "--tasks", "offline")
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
            yield f"{out} is finished: it holds this export already"
        else:
            yield from work.run()


def _is_written(_job: ShardJob) -> bool:
    """Return False: files that were written are no jobs any more."""
    return False


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


class _Export:
    """One export at work."""

    def __init__(
        self,
        settings: BaseSettings,
        sources: Sequence[Source],
        folder: ExportFolder,
        wanted: Wanted,
        known: KnownTexts | None,
        executor: Executor,
    ) -> None:
        self._settings = settings
        self._executor = executor
        self._options: Options = read_options(settings)
        self._largest = largest_page(settings)
        self._sources = sources
        self._files = tuple(file for source in sources for file in source.files)
        self._folder = folder
        self._wanted = wanted
        self._tokenizer = None if wanted.tokenizer is None else Tokenizer.of(wanted.tokenizer)
        model = wanted.language_model
        self._languages = BundledLanguages() if model is None else FastTextLanguages(given_path(model))
        self._known = known
        self._scored_by: str | None = None
        """The digest of the model that scores pages whose source has no score of theirs."""

    def request(self) -> dict[str, Any]:
        """Return all that decides the content of this export."""
        options = self._options
        files = {"tokenizer": self._tokenizer, "language_model": self._languages}
        return {
            "crawl4llm": __version__,
            "settings": {
                **self._wanted.settings(),
                **{f"{name}_digest": file.digest for name, file in files.items() if file is not None},
                **({"signatures": SCHEME} if self._wanted.compares_texts else {}),
                "text_extractor": options.text_extractor,
                "scorer": options.scorer,
                "scorer_model": options.scorer_model,
                "scorer_label": options.scorer_label,
                "download_maxsize": self._largest,
            },
            **({"known_texts": f"sha256:{self._known.identity}"} if self._known else {}),
            "sources": [source.facts for source in self._sources],
        }

    def run(self) -> Iterator[Part]:
        """Run all stages but those that an earlier process has finished."""
        self._check_sources()
        left_out = self._list()
        self._prepare()
        rows = Rows(self._folder.work)
        table = self._table(rows)
        oracle = self._oracle() if self._wanted.oracle else None
        unfit: dict[int, str] = {int(number): reason for number, reason in self._folder.facts("unfit").items()}
        while True:
            selection = table.select(rows, self._wanted, oracle, unfit)
            if fault := unknown_language(table.languages, self._wanted.languages):
                raise InputError(fault)
            if self._wanted.selects_by_influence and not selection.documents and not table.has_influence:
                raise InputError("no page has an influence score to select by; set SCORER_MODEL to score them")
            shards, found = self._write(selection.parts)
            if not found:
                break
            # A page that cannot be had makes room for another: its duplicate, or the next best.
            unfit.update(found)
            self._folder.note("unfit", {str(number): reason for number, reason in unfit.items()})
        if changed := changed_file(self._files):
            raise InputError(
                f"{changed} changed while it was exported; remove {self._folder.path} and export again, once nothing "
                "writes to it"
            )
        rows.close()
        left_out += selection.left_out
        self._folder.finish(self._manifest(shards, left_out, oracle), {shard.name for shard in shards})
        unknown = [source.given for source in self._sources if not source.knows_opt_outs]
        yield from report(self._folder.path, shards, left_out, unknown, _archives(self._sources))

    # -- stages -------------------------------------------------------------------------------------------------------

    def _list(self) -> Counter[str]:
        """List all documents, and those to be prepared; return the counts of left-out documents, by reason."""
        noted = self._folder.facts(LISTED)
        if noted:
            return Counter(noted["left_out"])
        first_files = [0, *accumulate(len(source.files) for source in self._sources)]
        left_out: Counter[str] = Counter()
        listed, lacking = 0, set[str]()
        numbers = AppendFile(self._folder.work / TO_PREPARE, at=0)
        heard = Heard(one for source in self._sources for one in source.heard())
        with closing(RowWriter(self._folder.work / LISTED_ROWS)) as writer, self._bar("listing", None) as bar:
            for source, first_file in zip(self._sources, first_files, strict=False):
                rows = map(self._refused, judged_later(source.rows(first_file), heard))
                while waiting := list(islice(rows, _ROWS_AT_ONCE)):
                    writer.append(waiting)
                    taken = [(number, row) for number, row in enumerate(waiting, listed) if row.reason is None]
                    numbers.append(np.array([number for number, _ in taken], dtype=NUMBER).tobytes())
                    lacking.update(what for what, lacks in _LACKING.items() if any(lacks(row) for _, row in taken))
                    listed += len(waiting)
                    bar.update(len(waiting))
                left_out.update(source.left_out)
            writer.sync()
        numbers.sync()
        numbers.close()
        self._folder.note(LISTED, {"left_out": left_out, **{what: what in lacking for what in _LACKING}})
        return left_out

    def _refused(self, row: Row) -> Row:
        """Return a row with the reason for which its influence leaves it out, if it is known and does."""
        if row.reason is not None or not row.scored:
            return row
        reason = self._wanted.refuses(row.influence)
        return row if reason is None else row._replace(reason=reason)

    @property
    def _by_influence(self) -> bool:
        return self._wanted.selects_by_influence or self._wanted.order == INFLUENCE

    def _prepare(self) -> None:
        """Prepare the documents that no reason leaves out yet."""
        options = self._options
        to_prepare = (self._folder.work / TO_PREPARE).stat().st_size // NUMBER.itemsize
        if not to_prepare:
            return
        lacking = self._folder.facts(LISTED)
        scorer = load_scorer(options) if lacking["scores"] and scores_pages(options) else None
        self._scored_by = f"sha256:{scorer.digest}" if scorer is not None else None
        if self._by_influence and scorer is not None:
            self._check_one_model(scorer)
        if lacking["texts"]:
            load_extractor(options.text_extractor)
        if lacking["languages"]:
            self._languages.load()  # processes that are forked share it
        preparer = Preparer(
            self._folder.work,
            self._files,
            options.text_extractor,
            scorer,
            self._wanted,
            self._largest,
            self._languages,
            self._known,
        )
        processes, folder = self._executor.processes(options.workers), self._folder.work
        preparing = Preparing(preparer, processes)
        if shares := self._shares(to_prepare):
            for _ in self._run(Jobs(preparing.do, shares, folder / "tasks", preparing.is_done), "preparing"):
                pass
            join(folder, shares)
            return
        with self._bar("preparing", to_prepare) as bar:
            for done in preparing.documents(Share(0, to_prepare)):
                bar.update(done)

    def _shares(self, documents: int) -> list[Share]:
        """Return the shares in which documents are prepared, as they were when that was begun; none for in one go."""
        noted = self._folder.facts("division")
        if not noted and (self._executor.tasks is None or (self._folder.work / PREPARED_ROWS).exists()):
            return []
        tasks = noted.get("tasks") or self._executor.tasks or 1
        self._folder.note("division", {"tasks": tasks})
        return shares_of(documents, tasks)

    def _run(self, jobs: Jobs[J, R], label: str) -> Iterator[tuple[J, R]]:
        options = self._options
        show = wants_bar(options.progress_bar)
        return run_missing(jobs, self._executor, options.workers, " documents", _KILLED, label, show)

    def _table(self, rows: Rows) -> TableInMemory | TableOnDisk:
        """Return the table of all documents, on disk if the work is done in tasks."""
        if self._executor.tasks is None:
            return TableInMemory(Columns.of(rows))
        from crawl4llm.tools.export.selecting_on_disk import TableOnDisk  # an extra

        return TableOnDisk(rows, self._folder.work)

    def _check_sources(self) -> None:
        """Raise InputError before any work if the selection does not fit the sources."""
        if self._by_influence:
            self._check_one_model(None)
        if self._wanted.oracle and not all(source.run for source in self._sources):
            raise InputError("--oracle is for the OUTPUT_DIRs of crawls: other sources name no corpus")

    def _check_one_model(self, scorer: Scorer | None) -> None:
        """Raise InputError if scores come from several models: they do not compare."""
        noted = ((source.facts.get("model_digest"), source.given) for source in self._sources)
        models = {str(digest): given for digest, given in noted if digest}
        if scorer is not None:
            models[f"sha256:{scorer.digest}"] = "SCORER_MODEL"
        if len(models) > 1:
            first, second = [f"{given} ({digest})" for digest, given in models.items()][:2]
            raise InputError(
                f"influence scores of {first} and {second} are of different models and cannot be compared; export "
                f"them separately, or without selecting by influence"
            )

    def _oracle(self) -> float:
        noted: float | None = self._folder.facts("oracle").get("threshold")
        if noted is None:
            runs = [source.run for source in self._sources if source.run]
            noted = oracle_threshold(self._settings, runs, self._executor)
            self._folder.note("oracle", {"threshold": noted})
        return noted

    def _write(self, parts: Iterable[Integers]) -> tuple[list[ShardFacts], dict[int, str]]:
        """Write the missing files; returns all files, and the unreadable documents."""
        suffix = self._wanted.format
        plans, start = [], 0
        with replacing(self._folder.work / PLAN) as plan:
            for part in parts:
                numbers = part.astype(NUMBER).tobytes()
                plan.write(numbers)
                plans.append((start, len(part), plan_digest(numbers, suffix)))
                start += len(part)
        width = max(5, len(str(len(plans))))
        named = {f"{number:0{width}d}.{suffix}": plan for number, plan in enumerate(plans)}
        digests = {name: digest for name, (_, _, digest) in named.items()}
        shards = {name: self._folder.written(name, digest) for name, digest in digests.items()}
        jobs = [
            ShardJob(
                self._folder.documents / name,
                suffix,
                start,
                size,
                self._folder.work,
                self._files,
                self._largest,
                self._tokenizer,
            )
            for name, (start, size, _) in named.items()
            if shards[name] is None
        ]
        unfit: dict[int, str] = {}
        folder = self._folder.work / "tasks" / plan_digest("".join(digests.values()).encode(), suffix)[:16]
        for job, result in self._run(Jobs(partial(map, write_shard), jobs, folder, _is_written), "writing"):
            written = Written.of(result)
            unfit.update(written.unfit)
            if written.facts is not None:
                shards[job.path.name] = written.facts
                self._folder.note_written(digests[job.path.name], written.facts)
        return [shard for shard in shards.values() if shard is not None], unfit

    # -- manifest -----------------------------------------------------------------------------------------------------

    def _manifest(self, shards: Sequence[ShardFacts], left_out: Counter[str], oracle: float | None) -> dict[str, Any]:
        return {
            **self.request(),
            "documents": sum(shard.documents for shard in shards),
            "tokens": {"words": sum(shard.words for shard in shards), **self._tokens(shards)},
            "text_bytes": sum(shard.text_bytes for shard in shards),
            "left_out": {reason: count for reason, count in sorted(left_out.items()) if count},
            "oracle_threshold": oracle,
            "model_digest": self._scored_by,
            "opt_out": [opt_out_notes(source) for source in self._sources],
            OPT_OUTS_KNOWN: [source.knows_opt_outs for source in self._sources],
            "shards": [shard.entry() for shard in shards],
        }

    def _tokens(self, shards: Sequence[ShardFacts]) -> dict[str, int]:
        return {} if self._tokenizer is None else {"tokenizer": sum(shard.tokens or 0 for shard in shards)}

    def _bar(self, what: str, total: int | None) -> Progress[int]:
        return Progress(None, what, total, unit=" documents", bar=wants_bar(self._options.progress_bar))

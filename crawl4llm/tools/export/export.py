"""``scrapy export``: all stages of an export, from sources to manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crawl4llm import __version__
from crawl4llm.base.bars import Progress
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import AppendFile
from crawl4llm.base.processes import run_jobs
from crawl4llm.base.tables import Fact, Line, Part
from crawl4llm.base.terminal import wants_bar
from crawl4llm.engine.past_runs import take_over
from crawl4llm.options import Options, read_options
from crawl4llm.scoring import Scorer, load_scorer
from crawl4llm.scoring.languages import FastTextLanguages
from crawl4llm.scoring.signatures import require_library
from crawl4llm.scoring.text import load_extractor
from crawl4llm.scoring.workers import PageWorkers
from crawl4llm.tools.evaluate.documents import Integers
from crawl4llm.tools.export.folder import LISTED, ExportFolder, plan_digest
from crawl4llm.tools.export.formats import PARQUET, require_package
from crawl4llm.tools.export.opt_outs import Later
from crawl4llm.tools.export.preparing import (
    LACKS_DIGEST,
    LACKS_INFLUENCE,
    LACKS_MEASURES,
    LACKS_TEXT,
    Preparer,
    lacking,
    prepare_all,
    scores_pages,
)
from crawl4llm.tools.export.rows import LISTED_ROWS, NUMBER, TO_PREPARE, Columns, Rows, RowWriter, Table
from crawl4llm.tools.export.selecting import INFLUENCE, Wanted, oracle_threshold, plan_shards, select, unknown_language
from crawl4llm.tools.export.shards import ShardFacts, ShardJob, write_shard
from crawl4llm.tools.export.sources import Source, changed_file, open_source, opt_out_notes
from crawl4llm.tools.export.tokens import Tokenizer
from simulate.open import largest_page

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.scoring.known_texts import KnownTexts

_ROWS_AT_ONCE = 256
"""Few enough to stay in the processor's cache until they are written."""


def export(settings: BaseSettings, given: Sequence[str], out: Path, wanted: Wanted) -> Iterator[Part]:
    """Export sources to a directory; yields lines for the user.

    Settings on the command line count, then those of the first run among the sources, then the project's. Raises
    InputError; what was done until then is kept, and the same export goes on from there.
    """
    wanted.check()
    if wanted.format == PARQUET:
        require_package("pyarrow", "--format parquet")
    if wanted.near_duplicates is not None:
        require_package("datasketch", "--near-duplicates")
    known = _known_texts(wanted.known) if wanted.known is not None else None
    folder = ExportFolder(out)
    folder.check_free()
    processes = max(read_options(settings).workers, 1)
    sources = [open_source(name, processes) for name in given]
    taken = settings.copy()
    if run := next((source for source in sources if source.settings), None):
        take_over(taken, run.settings, run.given)
    work = _Export(taken, sources, folder, wanted, known)
    with folder.claimed(work.request(), [source.files for source in sources]) as finished:
        if finished:
            yield f"{out} is finished: it holds this export already"
        else:
            yield from work.run()


def _known_texts(path: str) -> KnownTexts:
    """Open a file of known texts. Raises InputError."""
    from crawl4llm.scoring.known_texts import KnownTexts

    known = KnownTexts(Path(path).expanduser(), named="--known")
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
    ) -> None:
        self._settings = settings
        self._options: Options = read_options(settings)
        self._largest = largest_page(settings)
        self._sources = sources
        self._files = tuple(file for source in sources for file in source.files)
        self._folder = folder
        self._wanted = wanted
        self._tokenizer = None if wanted.tokenizer is None else Tokenizer.of(wanted.tokenizer)
        model = wanted.language_model
        self._languages = None if model is None else FastTextLanguages(Path(model).expanduser())
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
        left_out, columns = self._list()
        prepared = self._prepare()
        rows = Rows(self._folder.work)
        table = Table.of(rows) if prepared or columns is None else Table(columns)
        oracle = self._oracle() if self._wanted.oracle else None
        unfit: dict[int, str] = {int(number): reason for number, reason in self._folder.facts("unfit").items()}
        while True:
            selection = select(table, rows, self._wanted, oracle, unfit)
            if fault := unknown_language(table, self._wanted.languages):
                raise InputError(fault)
            if self._wanted.selects_by_influence and not len(selection.order) and np.isnan(table.influence).all():
                raise InputError("no page has an influence score to select by; set SCORER_MODEL, to score them")
            shards, found = self._write(selection.order, table)
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
        yield from _report(self._folder.path, shards, left_out)

    # -- stages -------------------------------------------------------------------------------------------------------

    def _list(self) -> tuple[Counter[str], Columns | None]:
        """List all documents, and which of them are to be prepared.

        Returns what else the sources hold, by reason; and what the rows say, None where they were listed before.
        """
        noted = self._folder.facts(LISTED)
        if noted:
            return Counter(noted["left_out"]), None
        first_files = [0, *accumulate(len(source.files) for source in self._sources)]
        left_out: Counter[str] = Counter()
        lacks, columns = bytearray(), Columns()
        later = Later(one for source in self._sources for one in source.heard())
        with closing(RowWriter(self._folder.work / LISTED_ROWS)) as writer, self._bar("listing", None) as bar:
            for source, first_file in zip(self._sources, first_files, strict=False):
                rows = later.judged(source.rows(first_file))
                while waiting := list(islice(rows, _ROWS_AT_ONCE)):
                    writer.append(waiting)
                    lacks += bytes(map(lacking, waiting))
                    columns.add(waiting)
                    bar.update(len(waiting))
                left_out.update(source.left_out)
            writer.sync()
        needed = np.frombuffer(bytes(lacks), dtype=np.uint8) & self._needs()
        numbers = AppendFile(self._folder.work / TO_PREPARE, at=0)
        numbers.append(np.flatnonzero(needed).astype(NUMBER).tobytes())
        numbers.sync()
        numbers.close()
        self._folder.note(LISTED, {"left_out": left_out, "scores": bool(np.any(needed & LACKS_INFLUENCE))})
        return left_out, columns

    def _needs(self) -> int:
        """Return the lacks for which documents are prepared: LACKS_TEXT and the like, added up."""
        wanted, options = self._wanted, self._options
        needs = LACKS_TEXT
        if wanted.measures_text or wanted.languages:
            needs |= LACKS_MEASURES
        if not wanted.keep_duplicates:
            needs |= LACKS_DIGEST
        if not wanted.keep_duplicates or self._by_influence or scores_pages(options):
            needs |= LACKS_INFLUENCE
        return needs

    @property
    def _by_influence(self) -> bool:
        return self._wanted.selects_by_influence or self._wanted.order == INFLUENCE

    def _prepare(self) -> bool:
        """Prepare the documents of which the sources lack something; returns whether there were any."""
        options = self._options
        to_prepare = (self._folder.work / TO_PREPARE).stat().st_size // NUMBER.itemsize
        if not to_prepare:
            return False
        scores = self._folder.facts(LISTED)["scores"]
        scorer = load_scorer(options) if scores and scores_pages(options) else None
        self._scored_by = f"sha256:{scorer.digest}" if scorer is not None else None
        if self._by_influence and scorer is not None:
            self._check_one_model(scorer)
        load_extractor(options.text_extractor)
        preparer = Preparer(
            self._folder.work,
            self._files,
            options.text_extractor,
            scorer,
            signatures=self._wanted.near_duplicates is not None,
            unscored=not self._wanted.selects_by_influence,
            largest=self._largest,
            languages=self._languages,
            known=self._known,
        )
        with (
            PageWorkers(preparer, options.workers, options.text_time_limit) as workers,
            self._bar("preparing", to_prepare) as bar,
        ):
            for done in prepare_all(preparer, self._folder.work, workers):
                bar.update(done)
        return True

    def _check_sources(self) -> None:
        """Raise InputError, before any work is done, where the selection does not take the sources."""
        if self._by_influence:
            self._check_one_model(None)
        if self._wanted.oracle and not all(source.run for source in self._sources):
            raise InputError("--oracle is for the OUTPUT_DIRs of crawls: other sources name no corpus")

    def _check_one_model(self, scorer: Scorer | None) -> None:
        """Raise InputError where scores come from several models: they do not compare."""
        noted = ((source.facts.get("model_digest"), source.given) for source in self._sources)
        models = {str(digest): given for digest, given in noted if digest}
        if scorer is not None:
            models[f"sha256:{scorer.digest}"] = "SCORER_MODEL"
        if len(models) > 1:
            first, second = [f"{given} ({digest})" for digest, given in models.items()][:2]
            raise InputError(
                f"influence scores of {first} and {second} are of different models and do not compare; export them "
                "apart, or without selecting by influence"
            )

    def _oracle(self) -> float:
        noted: float | None = self._folder.facts("oracle").get("threshold")
        if noted is None:
            noted = oracle_threshold(self._settings, [source.run for source in self._sources if source.run])
            self._folder.note("oracle", {"threshold": noted})
        return noted

    def _write(self, order: Integers, table: Table) -> tuple[list[ShardFacts], dict[int, str]]:
        """Write the files that are not there yet; returns all, and documents that cannot be had."""
        plans = [part.astype(NUMBER).tobytes() for part in plan_shards(order, table.text_bytes, self._wanted)]
        suffix = self._wanted.format
        width = max(5, len(str(len(plans))))
        named = {f"{number:0{width}d}.{suffix}": plan for number, plan in enumerate(plans)}
        digests = {name: plan_digest(plan, suffix) for name, plan in named.items()}
        shards = {name: self._folder.written(name, digest) for name, digest in digests.items()}
        jobs = [
            ShardJob(
                self._folder.documents / name,
                suffix,
                plan,
                self._folder.work,
                self._files,
                self._largest,
                self._tokenizer,
            )
            for name, plan in named.items()
            if shards[name] is None
        ]
        unfit: dict[int, str] = {}
        done = run_jobs(
            write_shard,
            jobs,
            self._options.workers,
            " documents",
            label="writing",
            killed="a process was killed while writing; export again, maybe with fewer SCORING_WORKERS, to go on",
            show=wants_bar(self._options.progress_bar),
        )
        for job, written in done:
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
            "shards": [shard.entry() for shard in shards],
        }

    def _tokens(self, shards: Sequence[ShardFacts]) -> dict[str, int]:
        return {} if self._tokenizer is None else {"tokenizer": sum(shard.tokens or 0 for shard in shards)}

    def _bar(self, what: str, total: int | None) -> Progress[int]:
        return Progress(None, what, total, unit=" documents", bar=wants_bar(self._options.progress_bar))


def _report(out: Path, shards: Sequence[ShardFacts], left_out: Counter[str]) -> Iterator[Part]:
    documents, words = sum(shard.documents for shard in shards), sum(shard.words for shard in shards)
    size = sum(shard.bytes for shard in shards)
    told = {"out": out, "documents": documents, "words": words, "files": len(shards), "bytes": size}
    counted = [shard.tokens for shard in shards if shard.tokens is not None]
    tokens = f" ({sum(counted):,} tokens)" if counted else ""
    yield from (
        Fact(name, value, "") for name, value in ({**told, "tokens": sum(counted)} if counted else told).items()
    )
    yield Line(
        f"Wrote {documents:,} documents, {words:,} words{tokens}, to {len(shards)} files of {size:,} bytes in {out}"
    )
    counts = {reason: count for reason, count in sorted(left_out.items()) if count}
    yield Fact("left_out", counts, "")
    yield from (Line(f"left out: {count:,} {reason}") for reason, count in counts.items())
    if left_out["not_indexed"]:
        yield (
            "not_indexed are pages that index.cdxj does not name yet: finish the crawl, or `scrapy archive repair` it, "
            "and export again to have them"
        )

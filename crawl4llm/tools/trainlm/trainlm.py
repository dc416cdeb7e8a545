"""``scrapy trainlm``: from the output directories of runs to what models learn from them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base import crawl_log
from crawl4llm.base.bars import Lines
from crawl4llm.base.command_lines import docs, merge_command, quoted
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import digest_of, given_path
from crawl4llm.base.installed import to_install
from crawl4llm.base.object_store import is_storage
from crawl4llm.base.processes import python_command, sigint_blocked
from crawl4llm.base.run_folder import WARC, write_text
from crawl4llm.base.tables import Fact, Part, Rows
from crawl4llm.base.whole_files import check_free, whole_folder, writing
from crawl4llm.base.within import require_within
from crawl4llm.options import read_options
from crawl4llm.tools._learnt import NAME, Results, names_of, rank_correlation, results_json
from crawl4llm.tools._text_sources import Sources, TextTaker, open_archives, texts_to_learn
from crawl4llm.tools.opened_run import open_run
from crawl4llm.tools.trainlm import trainer
from crawl4llm.tools.trainlm.plan import SIZES, Arm, Asked, PageText, Target, Tokenizer, write_plan
from crawl4llm.tools.trainlm.results import ORDER, collect, sentences
from crawl4llm.warc import INDEX_NAME
from simulate import PAGE

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_TRAIN: Final = f"import sys; from {trainer.__package__}.__main__ import main; sys.exit(main())"
_PACKAGES: Final = ("jax", "equinox", "optax")
_KILLED: Final = "was killed, maybe for want of memory; the same command goes on"
MISSING: Final = "not in the archive"
_FACTS: Final = ("crawl_id", "policy", "random_seed", "corpus_digest", "model_digest", "scorer")


@dataclass(frozen=True)
class Wanted:
    """Arguments of the command."""

    runs: Sequence[str]
    targets: Sequence[str]
    tokens: int
    out: Path
    size: str = "1m"
    seeds: int = 3
    points: int = 1
    tokenizer: str | None = None
    text_field: str = "text"
    device: str = "auto"
    only: str = ""
    """``estimate``: without training; ``plan``: the plan is written, and nothing is trained."""


def trainlm(settings: BaseSettings, wanted: Wanted) -> Iterator[Part]:
    """Train what has no result yet in the folder ``wanted.out``, and yield what the models have learnt.

    Raises InputError, also if the folder holds what was asked for with other arguments, texts or tokenizer.
    """
    if not wanted.only:
        _require_packages()
    arms = open_arms(settings, wanted.runs)
    _refuse_shared(arms, wanted.targets)
    tokenizer = Tokenizer.of(given_path(wanted.tokenizer)) if wanted.tokenizer else None
    request = _request(arms, wanted, tokenizer)
    if (wanted.out / trainer.PLAN).is_file():
        _check_same(wanted.out, request, tokenizer)
    else:
        _write(settings, arms, wanted, tokenizer, request)
    yield from _left_out(wanted.out)
    if wanted.only == "plan":
        words = ("python", "-m", "trainer", wanted.out, "--device", wanted.device)
        folder = Path(trainer.__file__).parent
        yield f"Wrote the plan {wanted.out}; copy it and the folder {folder} to a machine with JAX"
        yield f"There, beside the copied folder: {' '.join(quoted(words))}"
        return
    if not wanted.only:
        _train(wanted.out, wanted.device)
    results = collect(wanted.out, trained=not wanted.only)
    if not wanted.only:
        write_text(wanted.out / NAME, results_json(results))
    yield from _told(results, wanted.out)


def _require_packages() -> None:
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise InputError(f"scrapy trainlm needs {missing[0]}; {to_install('trainlm')}; or give --estimate")


def _refuse_shared(arms: Sequence[Arm], targets: Sequence[str]) -> None:
    """Raise InputError if a target is a run, or a part of one."""
    for given in targets:
        target = given_path(given).resolve()
        for arm in arms:
            run = Path(arm.facts["path"]).resolve()
            if run == target or run in target.parents or target in run.parents:
                raise InputError(f"--target {given}: shares texts with the run {run}; give other texts")


def _request(arms: Sequence[Arm], wanted: Wanted, tokenizer: Tokenizer | None) -> dict[str, Any]:
    """Return what tells a plan from others, as JSON has it."""
    targets = {given: _stamp(given_path(given)) for given in wanted.targets}
    logs = {str(arm.facts["path"]): _stamp(Path(arm.facts["path"]) / crawl_log.NAME) for arm in arms}
    size = {"model": wanted.size, "tokens": wanted.tokens, "seeds": wanted.seeds, "points": wanted.points}
    given = {"text_field": wanted.text_field, "tokenizer": tokenizer and tokenizer.digest}
    return {"runs": logs, "targets": targets, **size, **given}


def _stamp(path: Path) -> str:
    """Return a digest of a file; of a folder or a pattern that of nothing, as its texts are in the plan."""
    return digest_of(path) if path.is_file() else ""


def _check_same(out: Path, request: dict[str, Any], tokenizer: Tokenizer | None) -> None:
    """Raise InputError unless the plan in a folder is the one that is asked for."""
    with as_input_error("--out", form="{} {}", errors=trainer.PlanError):
        plan = trainer.load_plan(out)
    if tokenizer is not None and plan["tokenizer"] != tokenizer.digest:
        raise InputError(
            f"--out {out}: its models were trained with another tokenizer ({plan['tokenizer'][:12]}, not "
            f"{tokenizer.digest[:12]}), and cannot be compared; give another folder"
        )
    then = plan.get("request")
    if then != request:
        what = next((name for name in request if not isinstance(then, dict) or then.get(name) != request[name]), "more")
        raise InputError(f"--out {out}: was made with other {what}; give the same again, or another folder")


def _write(
    settings: BaseSettings, arms: Sequence[Arm], wanted: Wanted, tokenizer: Tokenizer | None, request: dict[str, Any]
) -> None:
    """Write the plan, whole or not at all. Raises InputError."""
    check_free(wanted.out)
    sources = Sources(settings, wanted.text_field)
    targets = [Target.of(given, sources.texts(sources.find(given))) for given in wanted.targets]
    asked = Asked(SIZES[wanted.size], wanted.tokens, wanted.seeds, wanted.points, tokenizer)
    with writing(wanted.out, "the plan"), whole_folder(wanted.out.absolute()) as folder:
        write_plan(folder, arms, targets, asked, request)


# -- the texts of runs ------------------------------------------------------------------------------------------------


def open_arms(settings: BaseSettings, given: Sequence[str]) -> list[Arm]:
    """Return the runs that are given. Raises InputError if one cannot be used, or they are of different corpora."""
    paths = [_path(one) for one in given]
    if len(set(paths)) < len(paths):
        raise InputError(f"{max(paths, key=paths.count)} is given twice; give each run once")
    facts = [_facts(path) for path in paths]
    for path, theirs in zip(paths[1:], facts[1:], strict=True):
        if theirs["corpus_digest"] != facts[0]["corpus_digest"]:
            raise InputError(
                f"{paths[0]} and {path} cannot be compared: they crawled different corpora ({facts[0]['corpus_digest']}"
                f" and {theirs['corpus_digest']}); give runs of one corpus"
            )
    names = names_of(paths, facts)
    return [
        Arm(name, _pages(path, settings), {"path": str(path), **theirs})
        for name, path, theirs in zip(names, paths, facts, strict=True)
    ]


def _path(given: str) -> Path:
    if is_storage(given):
        raise InputError(f"{given}: is a storage; make a run folder of it first: {merge_command(given)}")
    return open_run(given_path(given)).path


def _facts(path: Path) -> dict[str, Any]:
    settings = open_run(path).settings
    if not (path / WARC / INDEX_NAME).is_file():
        raise InputError(
            f"{path}: has no texts, because it has no archive ({WARC}/{INDEX_NAME}); was WARC_ENABLED off?"
        )
    return {name: settings.get(name) for name in _FACTS}


def _pages(run: Path, settings: BaseSettings) -> Iterator[PageText]:
    """Yield the pages of a run's archive, in the order of its crawl log. Raises InputError if log or archive cannot be
    read."""
    folder, log = run / WARC, run / crawl_log.NAME
    require_within(run, folder, log)
    options = read_options(settings)
    corpus, found = open_archives(folder, settings)
    taker = TextTaker(corpus, options.text_extractor, clean_text=not found.counts.get(PAGE))
    pages, listed = tee((corpus.resolve(str(line.get("url"))), _count(line, log)) for line in crawl_log.read_log(log))
    keys = (key for key, _ in listed if key is not None)
    with closing(corpus), closing(texts_to_learn(taker, keys, options.workers)) as texts:
        for key, fetched in pages:
            text = None if key is None else next(texts)
            if isinstance(text, str):
                yield PageText(text, fetched)
            else:
                yield PageText(None, fetched, MISSING if text is None else str(text.reason))


def _count(line: Mapping[str, Any], log: Path) -> int:
    if type(fetched := line.get("fetched")) is not int:
        raise InputError(f"{log} is damaged: a line has no number of fetched documents; get it again")
    return fetched


# -- training ----------------------------------------------------------------------------------------------------------


def _train(out: Path, device: str) -> None:
    """Do the missing trainings in a process of their own. Raises InputError; the process ends with this one's work."""
    plan = trainer.load_plan(out)
    every, left = len(plan["jobs"]), len(trainer.missing_jobs(out, plan))
    if not left:
        return
    command = python_command(_TRAIN, str(out), "--device", device)
    lines, last = Lines("training"), ""
    with sigint_blocked():  # Ctrl-C is this process's to answer, and to end the trainer then
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            last = line.strip() or last
            if lines.due() and not last.startswith("error: "):
                lines.say(f"{every - len(trainer.missing_jobs(out, plan)):,} of {every:,} trainings; {last}")
        status = process.wait()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    if status:
        why = re.sub("^error: ", "", last) if status > 0 else f"the trainer {_KILLED}"
        raise InputError(f"--out {out}: {why}")


# -- what is told ------------------------------------------------------------------------------------------------------


def _left_out(out: Path) -> Iterator[Part]:
    for run in trainer.load_plan(out)["runs"]:
        if run["left_out"]:
            counts = ", ".join(f"{count:,} {reason}" for reason, count in run["left_out"].items())
            yield Fact("left out", {"run": run["name"], **run["left_out"]}, f"{run['name']}: {counts}")


def _told(results: Results, out: Path) -> Iterator[Part]:
    yield Fact("tokenizer", results.about["tokenizer"])
    for target in results.targets:
        yield from _table(results, target)
    yield from sentences(results)
    if results.runs[0].points:
        if speed := results.about["speed"]:
            yield _speed(speed)
        yield f"Wrote {out / NAME}; scrapy evaluate shows the losses with --trained {out}"
    else:
        yield "These are estimates by n-grams; no model was trained."


def _table(results: Results, target: str) -> Iterator[Part]:
    """Yield the table of a target, the least loss first, and how well the estimates order the runs."""
    rows: list[list[Any]] = []
    for run in results.runs:
        for point in run.points:
            loss = [round(point.mean(target), 4), round(point.spread(target), 4)]
            is_last = point is run.points[-1]
            estimate = round(run.estimates[target], 4) if is_last else None
            rows.append([run.name, point.tokens, point.pages, point.fetched, *loss, estimate])
        if not run.points:
            rows.append([run.name, results.about["tokens"], None, None, None, None, round(run.estimates[target], 4)])
    place = 4 if results.runs[0].points else 6
    columns = ("run", "tokens", "pages", "fetched", "bits_per_byte", "spread", f"estimate_by_{ORDER}-grams")
    rows.sort(key=lambda row: row[place])
    yield Rows(f"target {target}", columns, rows, f"Bits a byte of {target}, mean and deviation over seeds", digits=4)
    if results.runs[0].points:
        trained = [run.points[-1].mean(target) for run in results.runs]
        found = rank_correlation(trained, [run.estimates[target] for run in results.runs])
        if found is not None:
            yield f"Rank correlation of the estimates with the trained models, {len(trained)} runs: {found:.2f}"


def _speed(speed: Mapping[str, Any]) -> Fact:
    shown = f"{speed['tokens_a_second']:,.0f} tokens a second on {speed['device']}"
    if speed["share_of_peak"] is not None:
        shown += f", {speed['share_of_peak']:.1%} of its peak (how that is counted: {docs('trainlm')})"
    return Fact("speed", speed, shown)

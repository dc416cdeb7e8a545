"""What the tests of two commits catch: the same changes of code are made in both, and those that no test sees counted.

    python -m benchmarks.code_mutants BEFORE AFTER --work FOLDER [--count 200] [--seed 0] [--jobs 2] [--seconds 30]

``BEFORE`` and ``AFTER`` are checkouts, each with its ``.venv``. Functions that both have word for word are candidates,
of the rooms crawl, frontier, live, cluster and export; of all their comparisons, conditions, numbers, sums, results and
calls ``--count`` are drawn by the seed, as many of each room. The whole suite of a checkout runs once on a copy that
notes which tests reach which of these functions, and is timed. Then each change is made in a copy, and the tests that
reach its function run until one fails: the quickest first, as many as take ``--seconds``. ``BEFORE`` gets only changes
that the tests of ``AFTER`` let pass, since its own are not to catch more than 3 others.

What is done already in the folder of work is not done again. Prints a line for each change that nothing sees, and a
table.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

ROOMS: Final = ("crawl", "frontier", "live", "cluster", "tools/export")
MOST_FEWER: Final = 3
_PAIRS: Final = ((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot))
_OTHER: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    one: other for pair in _PAIRS for one, other in (pair, pair[::-1])
}
_OTHER_SUM: Final = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.And: ast.Or, ast.Or: ast.And}
_GRACE: Final = 90
"""Seconds beyond ``--seconds`` after which a run of tests is ended: the change makes something hang, so it is seen."""
_HITS: Final = """\
import contextlib, os
_seen = set()
def hit(number):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    if test and (number, test) not in _seen:
        _seen.add((number, test))
        with contextlib.suppress(OSError), open(HITS, "a") as file:  # a test may limit the size of files
            file.write(f"{number}\\t{test}\\n")
"""
_PLUGIN: Final = """\
import json, os
import pytest
if "MUTANT_TESTS" in os.environ:
    wanted = {name: place for place, name in enumerate(json.loads(open(os.environ["MUTANT_TESTS"]).read()))}
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(config, items):
        items[:] = sorted((item for item in items if item.nodeid in wanted), key=lambda item: wanted[item.nodeid])
else:
    def pytest_runtest_logreport(report):
        with open(os.environ["MUTANT_HITS"] + ".times", "a") as file:
            file.write(f"{report.nodeid}\\t{report.duration}\\t{report.outcome}\\n")
"""


class Mutant(NamedTuple):
    """A change of a function that both checkouts have word for word."""

    file: str
    function: str
    begin: int
    end: int
    """Bytes in the function's source that are replaced."""
    text: str
    told: str

    @property
    def room(self) -> str:
        return next(room for room in ROOMS if self.file.startswith(f"crawl4llm/{room}/"))


def functions(path: Path) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the functions of a file with a body of its own line, by qualified names."""
    found = {}

    def visit(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                visit(child, f"{name}{child.name}.")
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and child.body[0].lineno > child.lineno:
                found[f"{name}{child.name}"] = child

    visit(ast.parse(path.read_bytes()), "")
    return found


def changes(function: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield parts of a function, and what stands in their place."""
    formatted = {part for node in ast.walk(function) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in ast.walk(function):  # before Python 3.12 the parts of formatted strings have no places
        if node in formatted:
            continue
        if isinstance(node, ast.Compare):
            for place, sign in enumerate(node.ops):
                if other := _OTHER.get(type(sign)):
                    ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
                    yield node, f"({ast.unparse(ast.Compare(node.left, ops, node.comparators))})"
        elif isinstance(node, (ast.BinOp, ast.BoolOp)) and (sum_ := _OTHER_SUM.get(type(node.op))):
            values = (node.left, sum_(), node.right) if isinstance(node, ast.BinOp) else (sum_(), node.values)
            yield node, f"({ast.unparse(type(node)(*values))})"
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield node, str(not node.value) if isinstance(node.value, bool) else str(node.value + 1)
        elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield node.test, f"(not ({ast.unparse(node.test)}))"
        elif isinstance(node, ast.Return) and node.value is not None:
            yield node.value, "None"
        elif isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await)):
            yield node, "pass"


def draw(before: Path, after: Path, count: int, seed: int) -> list[Mutant]:
    """Return the mutants, as many of each room as it has, up to its share."""
    chosen = []
    for room in ROOMS:
        found = []
        for path in sorted((after / "crawl4llm" / room).rglob("*.py")):
            file = str(path.relative_to(after))
            if not (before / file).exists():
                continue
            theirs, text, old = functions(before / file), path.read_bytes(), (before / file).read_bytes()
            for name, function in functions(path).items():
                source = _source(text, function)
                if name not in theirs or _source(old, theirs[name]) != source:
                    continue
                start = _offset(text, function.lineno, 0)
                for node, other in changes(function):
                    begin = _offset(text, node.lineno, node.col_offset) - start  # type: ignore[attr-defined]
                    end = _offset(text, node.end_lineno, node.end_col_offset) - start  # type: ignore[attr-defined]
                    was = source[begin:end].decode()
                    if other != was:
                        told = f"{file}:{node.lineno} {' '.join(was.split())} -> {other}"  # type: ignore[attr-defined]
                        found.append(Mutant(file, name, begin, end, other, told))
        chosen += random.Random(f"{seed} {room}").sample(found, min(count // len(ROOMS), len(found)))
    return chosen


def _offset(text: bytes, line: int, column: int) -> int:
    return sum(map(len, text.splitlines(keepends=True)[: line - 1])) + column


def _source(text: bytes, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bytes:
    assert function.end_lineno is not None
    return b"".join(text.splitlines(keepends=True)[function.lineno - 1 : function.end_lineno])


class Tree:
    """A checkout, and copies of it in which code is changed."""

    def __init__(self, path: Path, name: str, work: Path) -> None:
        self.path, self.name, self.work = path.resolve(), name, work
        self.times: dict[str, float] = {}
        self.reached: dict[int, list[str]] = {}

    def copy(self, name: str) -> Path:
        """Return a fresh copy, with ../shared beside it."""
        folder = self.work / f"{self.name}-{name}"
        shutil.rmtree(folder, ignore_errors=True)
        left_out = {".venv", ".git", "build", "crawls", "report"}
        shutil.copytree(
            self.path, folder, symlinks=True, ignore=lambda at, _: left_out if Path(at) == self.path else set()
        )
        shared = self.work / "shared"
        if not shared.exists() and (self.path.parent / "shared").exists():
            shared.symlink_to((self.path.parent / "shared").resolve())
        return folder

    def pytest(self, folder: Path, *args: str, **env: str) -> subprocess.Popen[bytes]:
        """Start pytest in a copy."""
        command = [str(self.path / ".venv/bin/python"), "-m", "pytest", "-p", "mutant_plugin", "-q", *args]
        whole = {**os.environ, "PYTHONPATH": str(self.work), **env}
        with (folder / "pytest.log").open("wb") as log:
            return subprocess.Popen(command, cwd=folder, env=whole, stdout=log, stderr=log, start_new_session=True)

    def reach(self, mutants: list[Mutant]) -> None:
        """Run the whole suite, and note which tests reach which functions, and how long each takes."""
        hits = self.work / f"{self.name}.hits"
        if not (done := self.work / f"{self.name}.done").exists():
            for path in (hits, Path(f"{hits}.times")):
                path.unlink(missing_ok=True)
            folder = self.copy("reach")
            (folder / "mutant_hits.py").write_text(f"HITS = {str(hits)!r}\n{_HITS}")
            by_file: dict[str, dict[str, int]] = {}
            for number, mutant in enumerate(mutants):
                by_file.setdefault(mutant.file, {}).setdefault(mutant.function, number)
            for file, names in by_file.items():
                _note_hits(folder / file, names)
            parallel = ["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0"]
            began = time.monotonic()
            self.pytest(folder, *parallel, MUTANT_HITS=str(hits)).wait()
            done.write_text(f"{time.monotonic() - began:.0f}")
        failed = set()
        for line in Path(f"{hits}.times").read_text().splitlines():
            test, seconds, outcome = line.split("\t")
            self.times[test] = self.times.get(test, 0) + float(seconds)
            failed |= {test} if outcome == "failed" else set()
        first: dict[tuple[str, str], int] = {}
        for number, mutant in enumerate(mutants):
            first.setdefault((mutant.file, mutant.function), number)
        tests: dict[int, set[str]] = {}
        for line in hits.read_text().splitlines():
            found, _, test = line.partition("\t")
            if test in self.times and test not in failed:
                tests.setdefault(int(found), set()).add(test)
        for number, mutant in enumerate(mutants):
            some = tests.get(first[mutant.file, mutant.function], set())
            self.reached[number] = sorted(some, key=lambda test: (self.times[test], test))
        print(f"{self.name}: whole suite {done.read_text()} s, {len(self.times)} tests", flush=True)

    def sees(self, folder: Path, number: int, mutant: Mutant, seconds: float) -> bool | None:
        """Whether a test fails with a mutant; None if none reaches it."""
        left = seconds
        chosen: list[str] = []
        for test in self.reached[number]:
            left -= self.times[test]
            if left < 0 and chosen:
                break
            chosen.append(test)
        if not chosen:
            return None
        path = folder / mutant.file
        was = path.read_bytes()
        (tests := folder / "tests.json").write_text(json.dumps(chosen))
        path.write_bytes(_mutated(was, functions(path)[mutant.function], mutant))
        os.utime(path, (10**9 + number, 10**9 + number))  # compiled code is known by this
        files = sorted({test.partition("::")[0] for test in chosen})
        process = self.pytest(folder, "-x", *files, MUTANT_TESTS=str(tests))
        try:
            return process.wait(seconds + _GRACE) != 0
        except subprocess.TimeoutExpired:
            return True
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            path.write_bytes(was)

    def unseen(self, mutants: dict[int, Mutant], jobs: int, seconds: float) -> dict[int, bool | None]:
        """Return, by mutant, whether the tests see it; those that are known already are not run again."""
        kept = self.work / f"{self.name}.seen.json"
        known: dict[int, bool | None] = {}
        if kept.exists():
            known = {int(number): seen for number, seen in json.loads(kept.read_text()).items()}
        folders: SimpleQueue[Path] = SimpleQueue()
        for job in range(jobs):
            folders.put(self.copy(str(job)))

        def one(number: int) -> tuple[int, bool | None]:
            folder = folders.get()
            try:
                return number, self.sees(folder, number, mutants[number], seconds)
            finally:
                folders.put(folder)

        with ThreadPoolExecutor(jobs) as pool:
            for number, seen in pool.map(one, [number for number in mutants if number not in known]):
                known[number] = seen
                kept.write_text(json.dumps(known))
                if not seen:
                    print(f"{self.name}: not seen: {mutants[number].told[:200]}", flush=True)
        return {number: known[number] for number in mutants}


def _mutated(text: bytes, function: ast.FunctionDef | ast.AsyncFunctionDef, mutant: Mutant) -> bytes:
    start = _offset(text, function.lineno, 0)
    return text[: start + mutant.begin] + mutant.text.encode() + text[start + mutant.end :]


def _note_hits(path: Path, names: dict[str, int]) -> None:
    """Let functions of a file note that they are called."""
    lines, found = path.read_text().splitlines(keepends=True), functions(path)
    for name, number in sorted(names.items(), key=lambda item: -found[item[0]].body[0].lineno):
        body = found[name].body
        first = body[1] if ast.get_docstring(found[name]) is not None and len(body) > 1 else body[0]
        at = min((one.lineno for one in getattr(first, "decorator_list", ())), default=first.lineno)
        lines.insert(at - 1, " " * first.col_offset + f'__import__("mutant_hits").hit({number})\n')
    path.write_text("".join(lines))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="folder of the copies and of what is done")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=30.0, help="of tests for a change (%(default)s)")
    parser.add_argument("--draw", action="store_true", help="print the changes, and end")
    args = parser.parse_args()
    work: Path = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    (work / "mutant_plugin.py").write_text(_PLUGIN)
    mutants = draw(args.before, args.after, args.count, args.seed)
    print(f"{len(mutants)} changes:", dict(Counter(mutant.room for mutant in mutants)), flush=True)
    if args.draw:
        print(*(mutant.told for mutant in mutants), sep="\n")
        return 0
    after, before = Tree(args.after, "after", work), Tree(args.before, "before", work)
    after.reach(mutants)
    seen = after.unseen(dict(enumerate(mutants)), args.jobs, args.seconds)
    left = {number: mutants[number] for number, is_seen in seen.items() if not is_seen}
    before.reach(mutants)
    earlier = before.unseen(left, args.jobs, args.seconds)
    lost = [number for number, is_seen in earlier.items() if is_seen]
    for room in ROOMS:
        of_room = [number for number, mutant in enumerate(mutants) if mutant.room == room]
        now, once = (sum(bool(found.get(number)) for number in of_room) for found in (seen, earlier))
        print(f"{room}: {len(of_room)} changes, {now} seen after, {once} seen before but not after")
    print(f"{sum(map(bool, seen.values()))} of {len(mutants)} seen; {len(lost)} were seen before (limit {MOST_FEWER}):")
    print(*(mutants[number].told[:200] for number in lost), sep="\n")
    return int(len(lost) > MOST_FEWER)


if __name__ == "__main__":
    sys.exit(main())

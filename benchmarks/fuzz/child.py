"""One target in a process of its own: ``python -m benchmarks.fuzz.child TARGET ...``, as ``benchmarks.fuzz`` starts it.

With Atheris the project's modules are instrumented as they are imported, and libFuzzer keeps the inputs that reach new
edges. Without, inputs are changed blindly, from the seeds alone.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from benchmarks.fuzz.guards import Guard
from benchmarks.fuzz.mutators import of_bytes
from benchmarks.fuzz.shared_state import SharedState
from benchmarks.fuzz.target import Target
from benchmarks.fuzz.targets import TARGETS
from benchmarks.fuzz.watching import Fault, Watched

INSTRUMENTED: Final = ("crawl4llm", "simulate", "protego", "w3lib", "http_sf")
CRASHES: Final = "crashes"
_ENGINE_BYTES: Final = 768 << 20
"""Address space that the engine may take besides a target's own bound."""
_NEVER: Final = 1_000_000
"""Seconds; the parent sees to hangs."""
_KEPT: Final = 3
"""Inputs that are kept of one kind of fault."""


class Findings:
    """A folder with the input of each fault, and a text file beside it."""

    def __init__(self, folder: Path, target: str) -> None:
        """Make the folder if it is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._target = folder, target
        self._kinds: Counter[str] = Counter(
            path.read_text("utf-8", "replace").partition("\n")[0] for path in folder.glob(f"{target}-*.txt")
        )

    def keep(self, data: bytes, fault: Fault) -> None:
        """Save an input, unless there are enough with this kind of fault."""
        self._kinds[fault.kind] += 1
        if self._kinds[fault.kind] <= _KEPT:
            path = self._folder / f"{self._target}-{hashlib.sha1(data).hexdigest()[:16]}"
            path.with_suffix(".input").write_bytes(data)
            path.with_suffix(".txt").write_text(f"{fault.kind}\n\n{fault.told}\n", "utf-8", "backslashreplace")

    @property
    def kinds(self) -> list[str]:
        """The kinds of faults."""
        return sorted(self._kinds)


def has_atheris() -> bool:
    """Return whether Atheris is installed."""
    return find_spec("atheris") is not None


def prepare(target: Target, folder: Path, guard: Callable[[], Guard]) -> tuple[Watched, list[bytes], list[Fault]]:
    """Return the watched reader of a target, its seeds, and the faults with the seeds. ``guard`` is asked for after all
    that the seeds need is imported."""
    folder.mkdir(parents=True)
    reader, seeds = target.make(folder), list(target.seeds())
    faults = []
    for seed in seeds:
        try:
            reader.read(seed)
        except Exception as error:  # noqa: BLE001 - a seed is valid input: not even the errors of the docstring may come
            faults.append(Fault("seed", f"{error!r} of {seed[:200]!r}"))
    return Watched(target, reader, guard()), seeds, faults


def blindly(target: Target, seeds: list[bytes], seed: int, run: Callable[[bytes], object], more: Iterable[Any]) -> None:
    """Run a reader on changed seeds, one for each of ``more``."""
    draw = random.Random(f"{target.name} {seed}")
    for _ in more:
        data, changed = draw.choice(seeds), None
        if target.mutate is not None and draw.random() < 0.5:
            changed = target.mutate(data, draw)
        if changed is None or len(changed) > target.longest:
            changed = of_bytes(data, draw, target.tokens, seeds, target.longest)
        run(changed)


def guided(target: Target, corpus: Path, folder: Path, seed: int, run: Callable[[bytes], object]) -> None:
    """Run a reader on what Atheris gives. Does not return."""
    atheris: Any = import_module("atheris")

    def mutate(data: bytes, most: int, number: int) -> bytes:
        draw = random.Random(number)
        if target.mutate is not None and draw.random() < 0.4:
            changed = target.mutate(data, draw)
            if changed is not None and len(changed) <= most:
                return changed
        return bytes(atheris.Mutate(data, most))

    options: dict[str, object] = {"seed": seed % (1 << 31) + 1, "max_len": target.longest}
    options |= {"timeout": _NEVER, "rss_limit_mb": 0}
    if target.tokens:
        options["dict"] = words = folder / "words"
        words.write_text("".join(f'"{"".join(f"{chr(92)}x{byte:02x}" for byte in word)}"\n' for word in target.tokens))
    arguments = [sys.argv[0], *(f"-{name}={value}" for name, value in options.items()), str(corpus)]
    atheris.Setup(arguments, run, **({} if target.mutate is None else {"custom_mutator": mutate}))
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="for what the reader writes")
    parser.add_argument("--seconds", type=float, required=True, help="of CPU")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--blind", action="store_true", help="without Atheris")
    args = parser.parse_args()
    logging.disable()
    target = TARGETS[args.target]
    is_guided = not args.blind and has_atheris()
    instrumented = (
        import_module("atheris").instrument_imports(include=list(INSTRUMENTED)) if is_guided else nullcontext()
    )
    work = args.folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    state = SharedState(args.folder / "state")
    findings = Findings(args.corpus / CRASHES, target.name)
    tempfile.tempdir = str(work)
    with instrumented:
        watched, seeds, faults = prepare(target, work, lambda: Guard(work))
    for fault in faults:
        findings.keep(fault.told.encode(), fault)
    os.chdir(work)
    _bound(target.megabytes)
    kept = args.corpus / target.name
    kept.mkdir(parents=True, exist_ok=True)
    for data in seeds:
        (kept / hashlib.sha1(data).hexdigest()).write_bytes(data)
    deadline = time.process_time() + args.seconds

    def run(data: bytes) -> None:
        state.begin(data)
        if (fault := watched.run(data)) is not None:
            findings.keep(data, fault)
        if time.process_time() > deadline:
            sys.stderr.flush()
            os._exit(0)

    if is_guided:
        guided(target, kept, args.folder, args.seed, run)
    blindly(target, seeds, args.seed, run, iter(int, 1))
    return 0


def _bound(megabytes: int) -> None:
    """Let allocations fail that are far beyond what a target may take."""
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    most = pages * resource.getpagesize() + (megabytes << 20) + _ENGINE_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main())

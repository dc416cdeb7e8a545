"""Fuzzes the readers of what comes from outside, each in a process of its own.

    python -m benchmarks.fuzz [TARGET ...] [--minutes 10] [--seed 0] [--corpus build/fuzz] [--blind] [--quick]

``--minutes`` is CPU time in all, divided among the targets by their weights. Inputs that reach new code are kept in
``CORPUS/TARGET`` and are where the next run begins. A fault is an error that the reader's docstring does not name, a
broken promise of that docstring, a write outside of the reader's folder, a process, a connection, an import, more
memory or CPU than the target allows, a crash, or a hang: its input is in ``CORPUS/crashes`` with a text that says what
happened, and the run goes on. Ends with status 1 if there was a fault.

``pip install 'crawl4llm[fuzz]'`` brings Atheris, whose coverage guides the changes. Without it, and with ``--blind``,
inputs are changed blindly. ``--quick`` runs all targets in this process on their seeds and some changes of each.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.fuzz.child import CRASHES, Findings, blindly, has_atheris, prepare
from benchmarks.fuzz.guards import Guard
from benchmarks.fuzz.shared_state import SharedState
from benchmarks.fuzz.target import Target
from benchmarks.fuzz.targets import TARGETS
from benchmarks.fuzz.watching import PROJECT, Fault, Watched

_EDGES: Final = re.compile(rb"cov: (\d+)")
_HANGS: Final = 30.0
"""Seconds of CPU for one input, after which its process is killed."""
_RESTARTS: Final = 20
"""Crashes of a target after which it is given up."""
_QUICK: Final = 20
"""Changed inputs of each target with ``--quick``."""
_LOOK_SECONDS: Final = 0.2


class Row(NamedTuple):
    """What came of a target."""

    name: str
    executions: int
    seconds: float
    """Of CPU."""
    edges: int | None
    """None without Atheris."""
    inputs: int
    faults: list[str]


def memory_folder() -> str | None:
    """Return a folder in memory, if there is one: readers of files read some thousand a second there."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def fuzz(target: Target, corpus: Path, seconds: float, seed: int, *, blind: bool) -> Row:
    """Run a target for some seconds of CPU, in one process after the other if it crashes."""
    findings = Findings(corpus / CRASHES, target.name)
    before = set(findings.kinds)
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory_folder()) as folder:
        state = SharedState(Path(folder, "state"))
        spent, log = 0.0, Path(folder, "log")
        for number in range(_RESTARTS):
            command = [sys.executable, "-m", "benchmarks.fuzz.child", target.name, f"--corpus={corpus}"]
            command += [f"--folder={folder}", f"--seconds={seconds - spent}", f"--seed={seed + number}"]
            with log.open("ab") as said:
                child = subprocess.Popen(
                    [*command, *(["--blind"] if blind else [])], cwd=PROJECT, stdout=said, stderr=said
                )
                took, hung = _waited(child, state)
            spent += took
            if child.returncode == 0:
                break
            kind = "hang" if hung else f"crash {child.returncode}"
            Findings(corpus / CRASHES, target.name).keep(state.read()[1], Fault(kind, _end(log)))
            if spent >= seconds:
                break
        found = _EDGES.findall(log.read_bytes())
        executions = state.read()[0]
    kept = sum(1 for _ in (corpus / target.name).glob("*"))
    faults = [kind for kind in Findings(corpus / CRASHES, target.name).kinds if kind not in before]
    return Row(target.name, executions, spent, int(found[-1]) if found else None, kept, faults)


def _waited(child: subprocess.Popen[bytes], state: SharedState) -> tuple[float, bool]:
    """Wait for a child; return the CPU seconds that it took, and whether it hung and was killed."""
    last, since, hung = -1, 0.0, False
    while True:
        ended, status, usage = os.wait4(child.pid, os.WNOHANG)
        if ended:
            child.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime, hung
        executions, now = state.read()[0], _cpu_of(child.pid)
        if executions != last:
            last, since = executions, now
        elif last and now - since > _HANGS:
            hung = True
            os.kill(child.pid, signal.SIGKILL)
        time.sleep(_LOOK_SECONDS)


def _cpu_of(process: int) -> float:
    """Return the CPU seconds of a process; 0 if it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _end(log: Path) -> str:
    return log.read_bytes()[-4000:].decode("utf-8", "replace")


def quickly(targets: list[Target], seed: int) -> dict[str, list[Fault]]:
    """Run targets in this process on their seeds and some changes; return the faults by target."""
    guards: list[Guard] = []
    faults: dict[str, list[Fault]] = {}
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory_folder()) as folder:

        def guard() -> Guard:
            guards[:] = guards or [Guard(Path(folder))]
            guards[0].learn()
            return guards[0]

        tempfile.tempdir = folder
        for target in targets:
            watched, seeds, found = prepare(target, Path(folder, target.name), guard)
            more: list[Fault | None] = []
            blindly(target, seeds, seed, partial(_note, watched, more), range(_QUICK))
            faults[target.name] = found + [fault for fault in more if fault is not None]
    return faults


def _note(watched: Watched, faults: list[Fault | None], data: bytes) -> None:
    faults.append(watched.run(data))


def table(rows: list[Row]) -> str:
    """Return what came of all targets."""
    lines = [f"{'target':18} {'executions':>12} {'a second':>9} {'edges':>7} {'inputs':>7}  faults"]
    for row in rows:
        rate = row.executions / row.seconds if row.seconds else 0.0
        edges = "" if row.edges is None else f"{row.edges:,}"
        faults = "; ".join(row.faults) or "-"
        lines.append(f"{row.name:18} {row.executions:12,} {rate:9,.0f} {edges:>7} {row.inputs:7,}  {faults}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"some of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--minutes", type=float, default=10, help="of CPU, in all (%(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", type=Path, default=PROJECT / "build/fuzz", help="folder of inputs (%(default)s)")
    parser.add_argument("--blind", action="store_true", help="without Atheris")
    parser.add_argument("--quick", action="store_true", help="the seeds and some changes, in this process")
    args = parser.parse_args()
    logging.disable()
    if unknown := set(args.targets) - TARGETS.keys():
        parser.error(f"{', '.join(sorted(unknown))}: there are {', '.join(TARGETS)}")
    chosen = [TARGETS[name] for name in args.targets or TARGETS]
    if args.quick:
        faults = quickly(chosen, args.seed)
        for name, found in faults.items():
            print(f"{name}: {len(found)} faults")
            for fault in found:
                print(f"  {fault.kind}\n{fault.told}")
        return int(any(faults.values()))
    if not args.blind and not has_atheris():
        print("Atheris is not installed (pip install 'crawl4llm[fuzz]'): inputs are changed blindly", file=sys.stderr)
    corpus, rows = args.corpus.resolve(), []
    total = sum(target.weight for target in chosen)
    for target in chosen:
        rows.append(fuzz(target, corpus, args.minutes * 60 * target.weight / total, args.seed, blind=args.blind))
        print(table(rows[-1:]).splitlines()[1], flush=True)
    print(f"\n{table(rows)}\n{sum(row.executions for row in rows):,} executions; inputs of faults: {corpus / CRASHES}")
    return int(any(row.faults for row in rows))


if __name__ == "__main__":
    sys.exit(main())

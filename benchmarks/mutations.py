"""Received data, attacked: a run, a JOBDIR, an export, a WACZ, known sets and storages with hostile objects.

    python -m benchmarks.mutations [--objects 500] [--only run,job,...] [--seed 0] [--one NUMBER] [--also job:498,...]

A small crawl of each kind is made. Then one object of it after the other is changed (:mod:`benchmarks.mutating`), and
every command that reads such a thing runs on it, in a forked child of this process. None may write or change anything
outside, import what a file names, print a traceback, take more than 300 MB or 60 s of CPU time, or end otherwise than
with status 0 or with one line that says what is wrong.

Prints a line for each command that did, with what was changed, and a table; the status is 1 if there was one.
``--one`` runs one changed object again, and prints what each command says; ``--also`` runs some beside the first ones.
"""

from __future__ import annotations

import argparse
import gc
import os
import pkgutil
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.mutated import CHANGES, PROJECT, Act, Subject, make, subjects
from benchmarks.mutating import TRAP, Mutator

MOST_MB: Final = 300
_CPU_SECONDS, _SECONDS, _ADDRESSES = 60, 150, 3 << 30
_LONGEST_LINE: Final = 3_000
_TOOLS: Final = [f"crawl4llm.tools.{name}" for name in ("archive", "corpus", "dashboard", "export", "frontier")]
_STATUSES: Final = range(5)
"""Of commands that say what was wrong."""


class Done(NamedTuple):
    """A command that ran."""

    status: int
    out: str
    err: str
    megabytes: float
    seconds: float


class Field:
    """A folder in which cases are laid out, always at the same place: what is outside of it is watched."""

    def __init__(self, root: Path) -> None:
        self.root, self.case, self.outside = root, root / "case", root / "outside"
        self.pristine = root / "pristine"
        for folder in (self.case, self.outside / "victims"):
            folder.mkdir(parents=True)
        (self.outside / "victim").write_text('{"id": "secret of the victim"}\n')
        (self.outside / "victims/index.cdxj").write_text("secret of the victim\n")
        (self.outside / f"{TRAP}.py").write_text(
            f"open({str(self.outside / 'imported')!r}, 'w').close()\n"
            "from crawl4llm.policies.breadth_first import Policy\n"
            "from crawl4llm.scoring.length import LengthScorer as Scorer\n"
        )
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("SCRAPY", "AWS", "PYTHON"))},
            "HOME": str(self.case / "home"),
            "XDG_CACHE_HOME": str(self.case / "home/cache"),
            "PYTHONPATH": f"{PROJECT}:{self.outside}",
            "MPLCONFIGDIR": str(root / "matplotlib"),  # one list of fonts for all cases
            "OPENBLAS_NUM_THREADS": "1",
            "TMPDIR": str(self.case / "tmp"),
        }

    def lay(self, source: Path) -> None:
        """Put a copy of a folder at the case's place."""
        shutil.rmtree(self.case)
        subprocess.run(["cp", "-a", str(source), str(self.case)], check=True)
        for name in ("home", "tmp", "cwd"):
            (self.case / name).mkdir(exist_ok=True)
        shutil.copyfile(PROJECT / "scrapy.cfg", self.case / "cwd/scrapy.cfg")

    def beside(self) -> dict[str, tuple[int, int]]:
        """Return what there is outside the case, with sizes and times of change."""
        found = {}
        for top, folders, files in os.walk(self.root):
            if Path(top) == self.root:
                folders[:] = [name for name in folders if name not in {"case", "changed", "matplotlib", "pristine"}]
            for name in (*folders, *files):
                path = Path(top, name)
                status = path.lstat()
                if "__pycache__" not in str(path):
                    found[str(path)] = (status.st_size, status.st_mtime_ns if path.is_file() else 0)
        return found

    def run(self, act: Act) -> Done:
        """Run a command in a forked child."""
        out, err = self.root / "out", self.root / "err"
        process = os.fork()
        if not process:
            self._become(act, out, err)
        began = time.monotonic()
        deadline = began + _SECONDS
        while True:
            ended, status, usage = os.wait4(process, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > deadline:
                os.kill(process, signal.SIGKILL)
                deadline = float("inf")
            time.sleep(0.005)
        said = [path.read_bytes()[:3_000_000].decode(errors="replace") for path in (out, err)]
        spent = usage.ru_utime + usage.ru_stime
        return Done(os.waitstatus_to_exitcode(status), said[0], said[1], usage.ru_maxrss / 1e3, spent)

    def _become(self, act: Act, out: Path, err: Path) -> None:
        """Be a command, in a child that does not return."""
        status = 70
        try:
            os.setpgid(0, 0)
            for number, path in ((1, out), (2, err)):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.environ.clear()
            os.environ.update(self.env)
            tempfile.tempdir = None
            os.chdir(self.case / "cwd")
            sys.path[:0] = [str(PROJECT), str(self.outside)]
            resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS + 5))
            resource.setrlimit(resource.RLIMIT_DATA, (_ADDRESSES, _ADDRESSES))
            if callable(act):
                status = _call(act)
            else:
                from scrapy.cmdline import execute

                sys.argv = ["scrapy", *act]
                execute()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        except BaseException:  # noqa: BLE001 - whatever it was is what is looked for
            traceback.print_exc()
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)


def _call(act: Callable[[], None]) -> int:
    """Call what Python's users call; an error of ours is one line, as commands print it."""
    from crawl4llm.base.errors import InputError, PageError

    try:
        act()
    except (InputError, PageError) as error:
        sys.stderr.write(f"crawl4llm: error: {error}\n")
        return 1
    return 0


def fault_of(done: Done) -> str | None:
    """Return what is wrong with the way in which a command ended; None if nothing is."""
    if "Traceback (most recent call last)" in done.out + done.err:
        return f"traceback: {_last_line(done.err if 'Traceback' in done.err else done.out)}"
    if done.status not in _STATUSES:
        return f"status {done.status}: {_last_line(done.err)}"
    if done.status and "crawl4llm: error: " not in done.err and "Usage" not in done.out + done.err:
        return f"status {done.status} without a line: {_last_line(done.err)}"
    if done.megabytes > MOST_MB:
        return f"{done.megabytes:.0f} MB"
    if "secret of the victim" in done.out:
        return "it shows what lies outside"
    if "\x1b" in done.out + done.err:
        return "it writes to the terminal as the file says"
    longest = max(map(len, done.err.splitlines()), default=0)
    return f"a line of {longest:,} characters" if longest > _LONGEST_LINE else None


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")[:200]


class Attack:
    """One subject after the other, object by object."""

    def __init__(self, field: Field, subject: Subject, seed: int) -> None:
        self._field, self.subject, self._seed = field, subject, seed
        self.commands = 0
        self.most = 0.0
        self.faults: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()

    def one(self, number: int) -> Iterator[tuple[str, str, Done, str | None]]:
        """Change an object, and run all commands; yield what was changed, a command, how it ended, and the fault."""
        field, changed = self._field, self._field.root / "changed"
        field.lay(field.pristine)
        folder = field.case / self.subject.folders[number % len(self.subject.folders)]
        mutator = Mutator(self._seed * 1_000_003 + number, field.outside)
        mutation = field.run(lambda: print(mutator.mutate(folder)))  # obstore's threads do not survive a fork
        said = mutation.out.strip() or mutation.err
        shutil.rmtree(changed, ignore_errors=True)
        field.case.rename(changed)
        field.case.mkdir()
        before, is_fresh = field.beside(), False
        for name, act in self.subject.acts:
            if not is_fresh or name.startswith(CHANGES):
                field.lay(changed)
            is_fresh = not name.startswith(CHANGES)
            done = field.run(act)
            fault = fault_of(done)
            after = field.beside()
            if after != before:
                differ = {path for path in {*before, *after} if before.get(path) != after.get(path)}
                differ -= {str(field.root / "out"), str(field.root / "err")}
                if differ:
                    fault = f"changes {min(differ)}"
                for path in differ:
                    if path not in before and Path(path).exists():
                        shutil.rmtree(path) if Path(path).is_dir() else Path(path).unlink()
                before = field.beside()
            self.commands += 1
            self.seconds[name] += done.seconds  # type: ignore[assignment]
            self.most = max(self.most, done.megabytes)
            if fault:
                self.faults[f"{name}: {fault}"[:160]] += 1
            yield said, name, done, fault


def warm() -> None:
    """Import what most commands need, so that children need not."""
    from importlib import import_module

    names = ["scrapy.cmdline", "scrapy.crawler", "scrapy.core.engine", "scrapy.core.scraper", "lmdb", "tldextract"]
    names += ["scrapy.core.downloader.handlers.http11", "crawl4llm.engine.run", "crawl4llm.engine.summary"]
    names += ["crawl4llm.spiders.influence", "crawl4llm.tools.cluster", "crawl4llm.tools.report"]
    names += ["simulate.middleware", "simulate.clueweb22", "twisted.internet.asyncioreactor", "trafilatura"]
    for package in ("scrapy.commands", "crawl4llm.commands", "crawl4llm.policies", *_TOOLS):
        paths = import_module(package).__path__
        names += [f"{package}.{module.name}" for module in pkgutil.iter_modules(paths)]
    for name in names:
        with suppress(ImportError):
            import_module(name)
    gc.freeze()  # a collection in a fork would copy every page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=500, help="changed objects of each kind (%(default)s)")
    parser.add_argument("--only", default="", help="some kinds, with commas between")
    parser.add_argument("--without", default="", help="commands that are left out, with commas between")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one", type=int, help="run this object alone, and print what commands say")
    parser.add_argument("--also", default="", help="more objects, such as job:498, with commas between")
    args = parser.parse_args()
    also = [name.partition(":")[::2] for name in args.also.split(",") if name]
    warm()
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        field = Field(Path(folder).resolve())
        make(field.root, lambda act: field.run(act).status)
        chosen = [one for one in subjects(field.root) if not args.only or one.name in args.only.split(",")]
        left_out = set(args.without.split(","))
        chosen = [
            one._replace(acts=[act for act in one.acts if act[0].removeprefix(CHANGES) not in left_out])
            for one in chosen
        ]
        attacks = [Attack(field, subject, args.seed) for subject in chosen]
        for attack in attacks:
            began = time.monotonic()
            more = [int(number) for name, number in also if name == attack.subject.name]
            for number in [args.one] if args.one is not None else [*range(args.objects), *more]:
                for said, name, done, fault in attack.one(number):
                    if args.one is not None or done.seconds > 20:
                        print(f"== {name} ({said}): {done}")
                    if fault:
                        print(f"{attack.subject.name} {number} [{said}] {name}: {fault}", flush=True)
            print(
                f"{attack.subject.name}: {attack.commands:,} commands, {attack.most:.0f} MB at most, "
                f"{sum(attack.faults.values())} faults, {time.monotonic() - began:.0f} s",
                flush=True,
            )
            print("  CPU seconds:", ", ".join(f"{name} {spent:.1f}" for name, spent in attack.seconds.most_common()))
    return int(any(attack.faults for attack in attacks))


if __name__ == "__main__":
    sys.exit(main())

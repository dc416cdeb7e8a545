"""Received data, attacked: a run, a JOBDIR, an export, a WACZ, known sets and storages with hostile objects.

    python -m benchmarks.mutations [--objects 500] [--only run,job,...] [--seed 0] [--one NUMBER]

A small crawl of each kind is made. Then one object of it after the other is changed (:mod:`benchmarks.mutating`), and
every command that reads such a thing runs on it, in a forked child of this process. None may write or change anything
outside, import what a file names, print a traceback, take more than 300 MB or 60 s of CPU time, or end otherwise than
with status 0 or with one line that says what is wrong.

Prints a line for each command that did, with what was changed, and a table; the status is 1 if there was one.
``--one`` runs one changed object again, and prints what each command says.
"""

from __future__ import annotations

import argparse
import gc
import json
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.mutating import TRAP, Mutator

PROJECT: Final = Path(__file__).resolve().parents[1]
MOST_MB: Final = 300
_CPU_SECONDS, _SECONDS, _ADDRESSES = 60, 150, 3 << 30
_LONGEST_LINE: Final = 3_000
_STATUSES: Final = range(5)
"""Of commands that say what was wrong."""
Act = list[str] | Callable[[], None]


class Subject(NamedTuple):
    """What is received, and the commands that read it."""

    name: str
    folders: Sequence[str]
    """Those whose objects are changed; all of a case lies beside them."""
    acts: Sequence[tuple[str, Act]]
    """``CHANGES`` before a name: it gets folders of its own."""


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
        for folder in (self.case, self.outside / "victims", self.pristine):
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
                folders[:] = [name for name in folders if name not in {"case", "changed", "pristine"}]
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


CHANGES: Final = "! "
_TOOLS: Final = [
    f"crawl4llm.tools.{name}" for name in ("archive", "cluster", "corpus", "dashboard", "export", "frontier", "report")
]


def subjects(field: Field) -> list[Subject]:
    """Return what is attacked, and the commands that read it."""
    case = field.case
    run, job, out, storage = (str(case / name) for name in ("run", "job", "out", "storage"))
    web = ["-s", f"CORPUS={field.root / 'web/clueweb22'}", "-s", "SCORER=length", "-s", "SCORING_WORKERS=0"]
    web += ["-s", "SCORE_CACHE=", "-s", "LOG_LEVEL=WARNING"]
    key = (field.root / "key").read_text()
    owner = (field.root / "owner").read_text()
    resume = ["crawl", "influence", *web, "-s", f"JOBDIR={job}", "-s", "CRAWL_MAX_PAGES=50", "-s", "WARC_TEXT=1"]

    documents, known = str(case / "export/documents/00000.jsonl.gz"), str(case / "known")
    small = ["--epochs", "1", "--buckets", "1000", "--dim", "2"]
    few = ["-s", "CRAWL_MAX_PAGES=10", "-s", "CRAWL_SEEDS=10"]

    def reads(source: str) -> list[tuple[str, Act]]:
        return [
            ("report", ["report", source]),
            ("export", ["export", source, "--out", out, *web]),
            ("archive check", ["archive", "check", source, "--jobs", "1"]),
            ("explain", ["explain", key, "--run", source, *web]),
            ("evaluate", ["evaluate", source, "--out", f"{out}-report", *web]),
            ("dashboard", lambda: _watch(source)),
            ("open_run", lambda: _open(source)),
        ]

    def stored(storage: str, batch: int) -> list[tuple[str, Act]]:
        url = f"file://{storage}"
        settings = [*web, "-s", f"STORAGE={url}", "-s", f"OUTPUT_DIR={case / 'again'}", "-s", "CRAWL_MAX_PAGES=30"]
        return [
            ("cluster status", ["cluster", "status", url]),
            ("cluster verify", ["cluster", "verify", url]),
            ("cluster merge", ["cluster", "merge", url, "--out", f"{out}-merged"]),
            ("cluster merge --index-only", ["cluster", "merge", url, "--out", f"{out}-index", "--index-only"]),
            ("frontier", ["frontier", url]),
            *reads(url),
            (f"{CHANGES}cluster compact", ["cluster", "compact", url]),
            (
                f"{CHANGES}crawl",
                ["crawl", "influence", *settings, "-s", f"CRAWL_BATCH_SIZE={batch}", "-s", "CRAWL_PARTITIONS=2"],
            ),
        ]

    return [
        Subject(
            "run",
            ["run"],
            [
                *reads(run),
                ("corpus index", ["corpus", "index", "-s", f"CORPUS={run}", "--jobs", "1"]),
                ("corpus known", ["corpus", "known", f"{out}-known", run, "--jobs", "1"]),
                ("crawl of it", ["crawl", "influence", *web, "-s", f"CORPUS={run}", "-s", "CRAWL_MAX_PAGES=5"]),
                (f"{CHANGES}archive repair", ["archive", "repair", run, "--jobs", "1"]),
                (f"{CHANGES}archive finish", ["archive", "finish", run, "--jobs", "1", "--wacz", f"{out}.wacz"]),
                (f"{CHANGES}archive purge", ["archive", "purge", owner, run, "--jobs", "1", "--yes"]),
            ],
        ),
        Subject(
            "job",
            ["job"],
            [
                ("frontier", ["frontier", job, "-s", f"OUTPUT_DIR={run}"]),
                ("frontier --verify", ["frontier", job, "--verify"]),
                ("frontier --export", ["frontier", job, "--export", f"{out}.jsonl"]),
                ("report", ["report", job]),
                ("dashboard", lambda: _watch(job)),
                ("open_run", lambda: _open(job)),
                ("explain", ["explain", key, "--run", run, "-s", f"JOBDIR={job}", *web]),
                ("archive check", ["archive", "check", run, "-s", f"JOBDIR={job}", "--jobs", "1"]),
                ("dry run", [*resume, "-s", "DRY_RUN=1"]),
                (f"{CHANGES}frontier --compact", ["frontier", job, "--compact"]),
                (f"{CHANGES}frontier --purge", ["frontier", job, "--purge", owner, "--yes"]),
                (f"{CHANGES}frontier --block", ["frontier", job, "--block", owner]),
                (f"{CHANGES}frontier --inject", ["frontier", job, "--inject", str(field.root / "key"), *web]),
                (f"{CHANGES}archive purge", ["archive", "purge", owner, run, "-s", f"JOBDIR={job}", "--yes"]),
                (f"{CHANGES}crawl", resume),
            ],
        ),
        Subject(
            "export",
            ["export", "begun"],
            [
                ("corpus known", ["corpus", "known", f"{out}-known", f"{case / 'export'}", "--jobs", "1"]),
                (
                    "trainscorer",
                    ["trainscorer", "--positive", documents, "--negative", documents, "--out", f"{out}-model", *small],
                ),
                (f"{CHANGES}export", ["export", run, "--out", str(case / "export"), "--format", "jsonl.gz", *web]),
                (
                    f"{CHANGES}export goes on",
                    ["export", run, "--out", str(case / "begun"), "--format", "jsonl.gz", *web],
                ),
                (
                    f"{CHANGES}archive purge",
                    ["archive", "purge", owner, run, "--export", str(case / "export"), "--yes"],
                ),
            ],
        ),
        Subject(
            "wacz",
            ["wacz"],
            [
                ("export", ["export", str(case / "wacz/run.wacz"), "--out", out, *web]),
                ("export of a folder", ["export", str(case / "wacz"), "--out", f"{out}2", *web]),
                ("corpus index", ["corpus", "index", "-s", f"CORPUS={case / 'wacz'}", "--jobs", "1"]),
                ("archive check", ["archive", "check", str(case / "wacz"), "--jobs", "1"]),
                ("open_run", lambda: _open(str(case / "wacz"))),
                (f"{CHANGES}finish", ["archive", "finish", run, "--jobs", "1", "--wacz", str(case / "wacz/run.wacz")]),
            ],
        ),
        Subject(
            "known",
            ["known"],
            [
                ("export --known", ["export", run, "--out", out, "--known", str(case / "known/texts.known"), *web]),
                (
                    "crawl",
                    ["crawl", "influence", *web, *few, "-s", f"KNOWN_URLS={known}/urls.known", "-s"]
                    + [f"KNOWN_TEXTS={known}/texts.known"],
                ),
            ],
        ),
        Subject("batches", ["storage"], stored(storage, 10)),
        Subject("journals", ["continuous"], stored(str(case / "continuous"), 0)),
    ]


def _watch(given: str) -> None:
    """Read a crawl as the dashboard does."""
    from scrapy.utils.project import get_project_settings

    from crawl4llm.tools._storage_view import run_folder
    from crawl4llm.tools.dashboard import child
    from crawl4llm.tools.dashboard.watch import open_crawl

    settings = get_project_settings()
    watch = open_crawl(run_folder(given, settings), settings)
    sys.stdout.write(watch.now().decode())
    time.sleep(0.05)
    sys.stdout.write(watch.now().decode())
    with suppress(OSError):
        sys.stdout.write(str(child.text(str(watch.output), "0")))
    if given.endswith("job"):
        sys.stdout.write(str(child.frontier(given)))


def _open(given: str) -> None:
    """Read a crawl as a notebook does."""
    from crawl4llm import open_run
    from crawl4llm.base.errors import PageError

    crawl = open_run(given)
    sys.stdout.write(f"{crawl!r} {crawl.stats.get('finish_reason')!r} {crawl.crawl_log().num_rows}")
    sys.stdout.write(f" {crawl.failures().num_rows}")
    for page in crawl.pages():
        with suppress(PageError):
            sys.stdout.write(f"{page.id!r} {len(page.text)} {len(page.links)}\n")


def make(field: Field) -> None:
    """Make a small crawl of each kind."""
    case, web, env = field.case, field.root / "web", {**field.env, "PYTHONPATH": str(PROJECT)}
    for name in ("home", "tmp", "cwd"):
        (case / name).mkdir()
    shutil.copyfile(PROJECT / "scrapy.cfg", case / "cwd/scrapy.cfg")

    def scrapy(*arguments: str, patch: str = "pass") -> str:
        code = f"import sys; sys.argv[0] = 'scrapy'; {patch}; from scrapy.cmdline import execute; execute()"
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=case / "cwd",
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode and patch == "pass":
            raise RuntimeError(f"{arguments}: {done.stderr[-2000:]}")
        return done.stdout

    scrapy("corpus", "demo", "--to", str(web), "--pages", "400", "--hosts", "30")
    sets = {"CORPUS": web / "clueweb22", "SCORER": "length", "SCORING_WORKERS": 0, "SCORE_CACHE": "", "CRAWL_SEEDS": 10}
    sets |= {"CRAWL_MAX_PAGES": 30}

    def crawl(**more: object) -> None:
        scrapy(
            "crawl", "influence", *(part for item in {**sets, **more}.items() for part in ("-s", "{}={}".format(*item)))
        )

    run = case / "run"
    crawl(OUTPUT_DIR=run, JOBDIR=case / "job", WARC_TEXT=1, WARC_MAX_BYTES=60_000)
    line = (run / "crawl.jsonl").read_text().splitlines()[3]
    from crawl4llm.base.domains import owner_of

    (field.root / "key").write_text(json.loads(line)["id"])
    (field.root / "owner").write_text(owner_of(json.loads(line)["url"]))
    export = ["export", str(run), "--format", "jsonl.gz", "-s", "SCORER=length", "-s", "SCORING_WORKERS=0", "--out"]
    scrapy(*export, str(case / "export"))
    killed = "import os; from crawl4llm.tools.export.folder import ExportFolder as F; F.finish = lambda *a: os._exit(9)"
    scrapy(*export, str(case / "begun"), patch=killed)
    (case / "wacz").mkdir()
    copy = case / "finished"
    shutil.copytree(run, copy)
    scrapy("archive", "finish", str(copy), "--wacz", str(case / "wacz/run.wacz"))
    shutil.rmtree(copy)
    scrapy("corpus", "known", str(case / "known"), str(case / "export"))
    for name, batch in (("storage", 10), ("continuous", 0)):
        (case / name).mkdir()
        crawl(
            STORAGE=f"file://{case / name}", CRAWL_PARTITIONS=2, CRAWL_BATCH_SIZE=batch, OUTPUT_DIR=case / f"w-{batch}"
        )
    for name in ("home", "tmp", "cwd"):
        shutil.rmtree(case / name)
    shutil.rmtree(field.pristine)
    shutil.copytree(case, field.pristine)


def warm() -> None:
    """Import what most commands need, so that children need not."""
    from importlib import import_module

    names = ["scrapy.cmdline", "scrapy.crawler", "scrapy.core.engine", "scrapy.core.scraper", "lmdb", "tldextract"]
    names += ["scrapy.core.downloader.handlers.http11", "crawl4llm.engine.run", "crawl4llm.engine.summary"]
    names += ["crawl4llm.spiders.influence", "crawl4llm.tools._merging", "crawl4llm.tools._merging_journals"]
    names += ["simulate.middleware", "simulate.clueweb22", "twisted.internet.asyncioreactor", "trafilatura", "pebble"]
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
    args = parser.parse_args()
    warm()
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        field = Field(Path(folder).resolve())
        make(field)
        chosen = [one for one in subjects(field) if not args.only or one.name in args.only.split(",")]
        left_out = set(args.without.split(","))
        chosen = [
            one._replace(acts=[act for act in one.acts if act[0].removeprefix(CHANGES) not in left_out])
            for one in chosen
        ]
        attacks = [Attack(field, subject, args.seed) for subject in chosen]
        for attack in attacks:
            began = time.monotonic()
            for number in [args.one] if args.one is not None else range(args.objects):
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

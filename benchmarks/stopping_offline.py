"""Stops of the offline commands at random moments: the same command must end with the same bytes.

    python -m benchmarks.stopping_offline [--stops 20] [--only export,known,...] [--seed 0] [--out FOLDER]

A small demo web is built and crawled. Each command then runs once as a whole, and is stopped at random moments of that
time: by SIGKILL, and as often by SIGINT or SIGTERM. After each stop the same command runs to its end. One trial in
three is stopped twice. All that the command wrote must have the bytes of the whole run, and nothing else may be left.
Files that differ between two whole runs, by the times in them, must be there. A command that ends before its stop is
tried again, so that all stops count.

Tells for each command the stops, and the trials that ended otherwise, with the first file that differs. Ends with
status 1 if there was one. The peer is the command that was not stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from benchmarks.results import PROJECT, Figure, Result, Table, add_output, publish

_LONGEST: Final = 600
"""Seconds a command may take, or take to stop."""
_MOST_ENDED: Final = 20
"""Most trials in a row whose command ended before its stop."""


class Offline(NamedTuple):
    """A command, in a folder of its own that holds a copy of what it changes."""

    name: str
    arguments: Sequence[str]
    """``{run}`` stands for the crawl, ``{here}`` for the trial's folder."""
    copied: str = ""
    """The folder of the crawl that is copied to ``here``, if the command changes it."""


_WEB: Final = ("-s", "CORPUS={web}/clueweb22", "-s", "SCORER_MODEL={web}/scorer.bin")
COMMANDS: Final = (
    Offline("export", ["export", "{run}", "--out", "{here}/out", "--shard-documents", "100"]),
    Offline("export-parquet", ["export", "{run}", "--out", "{here}/out", "--format", "parquet", "--tasks", "4"]),
    Offline("evaluate", ["evaluate", "{run}", "--out", "{here}/out", "--tasks", "4"]),
    Offline(
        "contest",
        [
            *("evaluate", "--contest", "--contest-web", "{web}/clueweb22", "--out", "{here}/out"),
            *("--policies", "influence,breadth_first,parent_mean", *_WEB, "-s", "CRAWL_MAX_PAGES=300"),
        ],
    ),
    Offline("check", ["archive", "check", "{run}", "--tasks", "4"]),
    Offline("finish", ["archive", "finish", "{here}/run", "--wacz", "{here}/whole.wacz"], copied="run"),
    Offline("finish-ids", ["archive", "finish", "{run}", "--trec-ids", "DEMO", "--out", "{here}/out"]),
    Offline("purge", ["archive", "purge", "{domain}", "{here}/run"], copied="run"),
    Offline("repair", ["archive", "repair", "{here}/run"], copied="damaged"),
    Offline("index", ["corpus", "index", "-s", "CORPUS={here}/warc", "--tasks", "4"], copied="run/warc"),
    Offline("build", ["corpus", "build", "--from", "{run}", "--to", "{here}/out"]),
    Offline("known", ["corpus", "known", "{here}/out", "{run}/warc", "--links", "--extract"]),
    Offline("ranks", ["corpus", "ranks", "--out", "{here}/ranks.gz", *_WEB]),
    Offline("bound", ["corpus", "bound", "--out", "{here}/bound.gz", *_WEB]),
    Offline("demo", ["corpus", "demo", "--to", "{here}/out", "--pages", "3000", "--hosts", "60"]),
    Offline(
        "trainscorer",
        [
            *("trainscorer", "--positive", "{run}/warc", "--negative", "{texts}", "--out", "{here}/out"),
            *("--buckets", "10000", "--dim", "10"),
        ],
    ),
    Offline(
        "trainlm",
        [
            *("trainlm", "{run}", "--target", "{texts}", "--tokens", "20000", "--out", "{here}/out"),
            *("--model", "50k", "--seeds", "1"),
        ],
    ),
)


class Trial(NamedTuple):
    """A run of a command in a folder of its own."""

    line: Sequence[str]
    here: Path

    def start(self) -> subprocess.Popen[str]:
        """Begin the command; what it keeps for later commands goes to its folder."""
        line = [sys.executable, "-m", "scrapy", *self.line]
        environ = {**os.environ, "XDG_CACHE_HOME": str(self.here / ".cache"), "PYTHONPATH": str(PROJECT)}
        pipe = subprocess.PIPE
        return subprocess.Popen(line, cwd=PROJECT, stdout=pipe, stderr=pipe, text=True, env=environ)

    def finish(self) -> dict[str, str]:
        """Run the command to its end; return the digests of its files by name. Raises RuntimeError if it fails."""
        process = self.start()
        out, err = process.communicate(timeout=_LONGEST)
        was_whole = "exists" in err  # the stop came after all was written
        if (process.returncode and not was_whole) or "Traceback" in err:
            raise RuntimeError(f"status {process.returncode} at the end: {out[-300:]}{err[-1000:]}")
        return self.digests()

    def stop(self, after: float, signum: signal.Signals) -> bool:
        """Stop the command after some seconds; return whether it was running. Raises RuntimeError if it complains."""
        process = self.start()
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.send_signal(signum)
        out, err = process.communicate(timeout=_LONGEST)
        if "exists" in err:
            return False  # an earlier stop came after all was written
        # Before Scrapy has loaded the command, and after its end, Python itself answers a signal.
        if process.returncode not in {0, 130, -signum} or (process.returncode == 130 and "Traceback" in err):
            raise RuntimeError(f"status {process.returncode} after {signum.name}: {out[-300:]}{err[-1000:]}")
        return process.returncode != 0

    def digests(self) -> dict[str, str]:
        """Return the digest of each file that the command has left, by name; its own folder has one name in all."""
        here = str(self.here).encode()
        return {
            name: hashlib.sha256(path.read_bytes().replace(here, b"HERE")).hexdigest()
            for path in sorted(self.here.rglob("*"))
            if path.is_file() and not (name := str(path.relative_to(self.here))).startswith(".cache/")
        }


def prepare(folder: Path, command: Offline, name: str) -> Trial:
    """Return a trial of a command, with a copy of what it changes in its folder."""
    here = folder / f"{command.name}-{name}"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    if command.copied:
        shutil.copytree(folder / command.copied, here / ("warc" if command.copied.endswith("warc") else "run"))
    domain = (folder / "domain").read_text(encoding="utf-8")
    given = {
        "run": folder / "run",
        "web": folder / "web",
        "here": here,
        "texts": folder / "texts.jsonl",
        "domain": domain,
    }
    return Trial([argument.format(**given) for argument in command.arguments], here)


def attack(folder: Path, command: Offline, stops: int, seed: int) -> tuple[int, list[str]]:
    """Stop a command ``stops`` times by kill -9, and as often politely; return the stops, and what went wrong."""
    draw = random.Random(f"{seed} {command.name}")
    begun = time.monotonic()
    whole = prepare(folder, command, "whole").finish()
    seconds = time.monotonic() - begun
    second = prepare(folder, command, "whole").finish()
    varied = sorted(name for name in {*whole, *second} if whole.get(name) != second.get(name))
    print(f"{command.name}: {seconds:.1f} s, {len(whole)} files; these have times: {', '.join(varied)}", flush=True)
    count, wrong = 0, []
    for signals in ([signal.SIGKILL], [signal.SIGINT, signal.SIGTERM]):
        done = ended = 0
        while done < stops and ended < _MOST_ENDED:
            trial, found = prepare(folder, command, "stopped"), None
            moments = [(draw.uniform(0.02, 1) * seconds, draw.choice(signals)) for _ in range(draw.choice([1, 1, 2]))]
            try:
                running = sum(trial.stop(*moment) for moment in moments)
                done, ended = done + running, 0 if running else ended + 1
                last = trial.finish()
                differ = [name for name in {*whole, *last} if whole.get(name) != last.get(name)]
                found = next((name for name in sorted(differ) if name not in varied or name not in last), None)
            except RuntimeError as error:
                done, found = done + 1, str(error)
            if found is not None:
                told = ", ".join(f"{signum.name} at {after:.2f} s" for after, signum in moments)
                wrong.append(f"{command.name}, {told}: {found}")
                print(wrong[-1], flush=True)
        count += done
    return count, wrong


def make_inputs(folder: Path) -> None:
    """Build and crawl a demo web; make a damaged archive, a file of other texts, and the name of a domain to purge."""
    Trial(["corpus", "demo", "--to", str(folder / "web"), "--pages", "3000", "--hosts", "60"], folder).finish()
    web = [part.format(web=folder / "web") for part in _WEB]
    settings = {"OUTPUT_DIR": folder / "run", "CRAWL_MAX_PAGES": 600, "WARC_MAX_BYTES": 400_000}
    given = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    Trial(["crawl", "influence", *web, *given], folder).finish()
    urls = [json.loads(line)["url"] for line in (folder / "run/crawl.jsonl").open(encoding="utf-8")]
    domain, _ = Counter(urlsplit(url).hostname or "" for url in urls).most_common(1)[0]
    (folder / "domain").write_text(domain, encoding="utf-8")
    shutil.copytree(folder / "run", folder / "damaged")
    first, *_, last = sorted((folder / "damaged/warc").glob("*.warc.gz"))
    last.write_bytes(last.read_bytes()[:-1000])
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)
    draw = random.Random(0)
    words = [f"word{number}" for number in range(300)]
    texts = [" ".join(draw.choices(words, k=120)) for _ in range(300)]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "texts.jsonl").write_text(lines, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stops", type=int, default=20, help="of each command and each kind of stop")
    parser.add_argument("--only", default="", help="names of commands, with commas between them")
    parser.add_argument("--seed", type=int, default=0)
    add_output(parser)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the background jobs of a shell ignore it
    only = options.only.split(",") if options.only else [command.name for command in COMMANDS]
    rows, wrong = [], []
    with tempfile.TemporaryDirectory(prefix="stopping") as name:
        make_inputs(Path(name))
        for command in COMMANDS:
            if command.name in only:
                count, found = attack(Path(name), command, options.stops, options.seed)
                rows.append((command.name, count, len(found)))
                wrong += found
    table = Table("Stops of offline commands", ("", "stops", "with another end"), rows)
    figure = Figure("commands that ended with other bytes", len(wrong), 0)
    publish(Result("stopping_offline", ["demo web"], [table], [figure], wrong), options)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""How many files a reader has to open to follow a page: those in which a function runs while a crawl goes on.

    python -m benchmarks.walk [--corpus CLUEWEB22] [--model PATH]

A crawl of a ClueWeb22 tree without worker processes and score cache, watched from the call of
``InfluenceScheduler.open`` to the close of the last WARC file. Left out are the extensions that only look on (progress,
series), and the summary. Prints each file with the function that is called first in it, in the
order of the walk, and last how many there are.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from scrapy.cmdline import execute

PROJECT = Path.cwd()
"""The checkout that is watched: the one that this was started in."""
ROOMS = ("crawl4llm/", "simulate/")
LEFT_OUT = ("progress.py", "summary.py")
LOOK_ON = ("crawl4llm.engine.progress.Progress", "crawl4llm.engine.series.Series")
SHARED = PROJECT.parent / "shared"


class Walk:
    """A profile function (sys.setprofile) that notes in which of our files functions run."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        """With the function that is called first in each."""
        self._open = False

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name == "open" and _owner(frame) == "InfluenceScheduler":
            self._open = True
        elif event == "return" and code.co_name == "close" and _owner(frame) == "ArchiveWriter":
            self._open = False
        if self._open and event == "call" and code.co_flags & inspect.CO_OPTIMIZED and code.co_name != "<module>":
            name = code.co_filename.removeprefix(f"{PROJECT}/")
            if name.startswith(ROOMS) and not name.endswith(LEFT_OUT):
                self.files.setdefault(name, code.co_name)


def _owner(frame: FrameType) -> str:
    """Name of the class whose method runs."""
    return type(frame.f_locals.get("self")).__name__


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, default=SHARED / "clueweb22-sample", help="a tree in ClueWeb22's layout")
    parser.add_argument("--model", type=Path, default=SHARED / "scorers/prose.bin", help="a fastText classifier")
    args = parser.parse_args()
    walk = Walk()
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "EXTENSIONS": json.dumps(dict.fromkeys(LOOK_ON)),
            "CORPUS": args.corpus,
            "SCORER_MODEL": args.model,
            "SCORING_WORKERS": 0,
            "SCORE_CACHE": "",
            "CRAWL_MAX_PAGES": 300,
            "CRAWL_SEEDS": 20,
            "CRAWL_BATCH_SIZE": 10,
            "OUTPUT_DIR": f"{folder}/run",
            "LOG_LEVEL": "WARNING",
        }
        threading.setprofile(walk)
        sys.setprofile(walk)
        try:
            execute(["scrapy", "crawl", "influence", *(f"-s{name}={value}" for name, value in settings.items())])
        except SystemExit as ended:
            if ended.code:
                raise
        finally:
            sys.setprofile(None)
    for name, function in walk.files.items():
        print(f"{name:<44} {function}")
    print(len(walk.files), "files")


if __name__ == "__main__":
    main()

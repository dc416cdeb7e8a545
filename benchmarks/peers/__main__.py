"""Run all public test suites that are below a folder: ``python -m benchmarks.peers FOLDER [--only NAME,...]``.

Prints a line for each suite, and each case that differs without a reason in README.md here. The exit status is 1 if
there is such a case, or no suite.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from benchmarks.peers import __path__ as here
from benchmarks.peers.results import Result


def suites() -> Iterator[str]:
    """Yield the names of the modules that run suites."""
    for module in iter_modules(here):
        if hasattr(import_module(f"benchmarks.peers.{module.name}"), "run"):
            yield module.name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a folder with checkouts of the suites' repositories")
    parser.add_argument("--only", default="", help="some modules of benchmarks/peers, with commas between")
    args = parser.parse_args()
    results: list[Result] = []
    print(f"{'suite':60}{'same':>8}{'known':>8}{'other':>8}")
    for name in suites():
        if args.only and name not in args.only.split(","):
            continue
        for result in import_module(f"benchmarks.peers.{name}").run(args.folder):
            print(f"{result.suite:60}{result.passed:8,}{result.known:8,}{len(result.failed):8,}", flush=True)
            for case in result.failed:
                print(f"  {case}")
            results.append(result)
    if not results:
        print(f"{args.folder} has none of the suites of README.md here", file=sys.stderr)
    return int(not results or any(result.failed for result in results))


if __name__ == "__main__":
    sys.exit(main())

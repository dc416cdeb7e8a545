"""The command line of the trainer."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from . import PlanError


def main() -> int:
    """Train by the command line; print a line of JSON for each job, and one line for an error."""
    parser = argparse.ArgumentParser(description="Trains the models of a plan.")
    parser.add_argument("plan", type=Path, metavar="PLAN_DIR")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends it at once, as SIGTERM does; the same command goes on
    if args.device != "auto":
        os.environ["JAX_PLATFORMS"] = args.device
    try:
        # JAX reads the variable when it is imported, and may be missing
        from .training import train

        for found in train(args.plan, args.device):
            print(json.dumps(found), flush=True)  # noqa: T201 - this is what prints
    except (PlanError, OSError, ImportError) as error:
        why = f"{error.filename or args.plan}: {error.strerror}" if isinstance(error, OSError) else error
        missing = "; pip install jax equinox optax" if isinstance(error, ImportError) else ""
        print(f"error: {why}{missing}", file=sys.stderr)  # noqa: T201 - likewise
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Live logging to Weights & Biases. ``WANDB_MODE=offline`` needs no account and no network; ``wandb sync`` sends later.

Its own environment variables (``WANDB_PROJECT``, ``WANDB_ENTITY``, ``WANDB_API_KEY`` ...) work as ever.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import wandb

from crawl4llm.base.errors import InputError

PROJECT = "crawl4llm"


class WandbLogger:
    """A run in ``OUTPUT_DIR/wandb``, named like the directory, with the crawl's settings as its configuration.

    Only what the crawl counts is sent: not the console, the source code, the packages, or the state of the machine.
    """

    def __init__(self, output: Path, description: Mapping[str, Any]) -> None:
        try:
            settings = wandb.Settings(console="off", x_disable_machine_info=True, x_save_requirements=False)
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT") or PROJECT,
                name=output.name,
                dir=str(output),
                config=dict(description),
                settings=settings,
            )
        except (wandb.Error, OSError, ValueError) as error:  # ValueError: a wrong value in the environment
            reason = " ".join(str(error).split()) or type(error).__name__
            raise InputError(f"LIVE_LOGGING wandb cannot start ({reason}); WANDB_MODE=offline does without") from None

    def log(self, crawled: int, figures: Mapping[str, float]) -> None:
        self._run.log(dict(figures), step=crawled)

    def close(self) -> None:
        self._run.finish()

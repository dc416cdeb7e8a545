"""Live logging for TensorBoard: event files in ``OUTPUT_DIR/tensorboard``, written by tensorboardX.

``tensorboard --logdir crawls`` shows all crawls; it is no part of the extra.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensorboardX import SummaryWriter

from crawl4llm.base.errors import InputError
from crawl4llm.base.output_dir import TENSORBOARD


class TensorBoardLogger:
    """Scalars under the keys of ``crawl4llm.base.stats``, with pages crawled as the step."""

    def __init__(self, output: Path, description: Mapping[str, Any]) -> None:
        folder = output / TENSORBOARD
        try:
            self._writer = SummaryWriter(logdir=str(folder))
        except OSError as error:
            raise InputError(f"LIVE_LOGGING tensorboard cannot write to {folder}: {error.strerror}") from None
        self._writer.add_text("settings", f"```json\n{json.dumps(description, indent=1)}\n```")

    def log(self, crawled: int, figures: Mapping[str, float]) -> None:
        for key, value in figures.items():
            self._writer.add_scalar(key, value, crawled)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

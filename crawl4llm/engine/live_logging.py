"""Live logging: sends the figures of a running crawl to TensorBoard or Weights & Biases (LIVE_LOGGING)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.installed import to_install
from crawl4llm.base.output_dir import TENSORBOARD
from crawl4llm.base.run_folder import SETTINGS
from crawl4llm.base.stats import PREFIX
from crawl4llm.crawl import BAD_INPUT, Driven
from crawl4llm.engine.scheduler import iteration_done

_SECONDS = 10.0
"""Seconds between figures in continuous order, which has no iterations."""


class TensorBoardLogger:
    """Event files in ``OUTPUT_DIR/tensorboard``, written by tensorboardX: scalars under the keys of
    ``crawl4llm.base.stats``, with pages crawled as the step.

    ``tensorboard --logdir crawls`` shows all crawls; the extra does not install it.
    """

    def __init__(self, output: Path, description: Mapping[str, Any]) -> None:
        """Begin: ``output`` is the crawl's directory, ``description`` its ``settings.json``. Raises InputError."""
        from tensorboardX import SummaryWriter  # tensorboardX is an extra

        folder = output / TENSORBOARD
        with as_input_error(f"LIVE_LOGGING tensorboard cannot write to {folder}"):
            self._writer = SummaryWriter(logdir=str(folder))
        self._writer.add_text("settings", f"```json\n{json.dumps(description, indent=1)}\n```")

    def log(self, crawled: int, figures: Mapping[str, float]) -> None:
        """Log figures by their keys; the step is the number of pages crawled."""
        for key, value in figures.items():
            self._writer.add_scalar(key, value, crawled)
        self._writer.flush()

    def close(self) -> None:
        """Release all resources."""
        self._writer.close()


class WandbLogger:
    """A run of Weights & Biases in ``OUTPUT_DIR/wandb``, named like the directory, with the crawl's settings as its
    configuration.

    Only figures of the crawl are sent: not the console, the source code, the packages, or the state of the machine.
    ``WANDB_MODE=offline`` needs no account and no network; ``wandb sync`` sends the figures later. Its own environment
    variables (``WANDB_PROJECT``, ``WANDB_ENTITY``, ``WANDB_API_KEY`` ...) work as usual.
    """

    def __init__(self, output: Path, description: Mapping[str, Any]) -> None:
        """Begin, as :class:`TensorBoardLogger` does."""
        import wandb  # wandb is an extra

        try:
            self._run = wandb.init(
                project=os.environ.get("WANDB_PROJECT") or "crawl4llm",
                name=output.name,
                dir=str(output),
                config=dict(description),
                settings=wandb.Settings(console="off", x_disable_machine_info=True, x_save_requirements=False),
            )
        except (wandb.Error, OSError, ValueError) as error:  # ValueError: a wrong value in the environment
            reason = " ".join(str(error).split()) or type(error).__name__
            raise InputError(f"LIVE_LOGGING wandb cannot start ({reason}); WANDB_MODE=offline does without") from None

    def log(self, crawled: int, figures: Mapping[str, float]) -> None:
        """Log figures, as :class:`TensorBoardLogger` does."""
        self._run.log(dict(figures), step=crawled)

    def close(self) -> None:
        """Send the rest, and release all resources."""
        self._run.finish()


_Logger = TensorBoardLogger | WandbLogger
_LOGGERS: dict[str, tuple[str, type[_Logger]]] = {
    "tensorboard": ("tensorboardX", TensorBoardLogger),
    "wandb": ("wandb", WandbLogger),
}
"""Packages and loggers by their LIVE_LOGGING name, which is also the name of the extra."""


def _require_packages(names: Iterable[str]) -> None:
    """Raise InputError if the package of a logger is not installed."""
    for name in names:
        try:
            import_module(_LOGGERS[name][0])
        except ImportError as error:
            reason = f"is not installed ({error.name}); {to_install(name)}"
            raise InputError(f"LIVE_LOGGING {name} {reason}") from None


class LiveLogging:
    """Scrapy extension: logs the figures of ``crawl4llm.base.stats``, without the prefix, against pages crawled.

    If a logger cannot start, the crawl ends before its first page as ``bad_input``.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._loggers: list[_Logger] = []
        self._logged = -1  # pages crawled when figures were last logged
        self._repeated: Any = None
        self._closing: asyncio.Task[None] | None = None
        crawler.signals.connect(self._open, signal=signals.spider_opened)
        crawler.signals.connect(self._log, signal=iteration_done)
        crawler.signals.connect(self._close, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LiveLogging:
        if not crawler.settings.get("LIVE_LOGGING"):
            raise NotConfigured
        return cls(crawler)

    def _open(self, spider: Any) -> None:
        crawl: Driven | None = getattr(spider, "crawl", None)
        if crawl is None or crawl.options.dry_run:
            return
        names, output = crawl.options.live_logging, spider.run.output
        try:
            _require_packages(names)
            description = json.loads((output / SETTINGS).read_text(encoding="utf-8"))
            for name in names:
                self._loggers.append(_LOGGERS[name][1](output, description))
        except InputError as error:
            crawl.failure = str(error)
            self._closing = asyncio.ensure_future(self._crawler.engine.close_spider_async(reason=BAD_INPUT))
            return
        if crawl.continuous:
            self._repeated = create_looping_call(self._log, crawl)
            self._repeated.start(_SECONDS, now=False)

    def _log(self, crawl: Driven) -> None:
        stats = sorted(self._crawler.stats.get_stats().items())
        figures = {key.removeprefix(PREFIX): value for key, value in stats if key.startswith(PREFIX)}
        self._logged = crawl.crawled
        for logger in self._loggers:
            logger.log(crawl.crawled, figures)

    def _close(self, spider: Any) -> None:
        if self._repeated is not None:
            self._repeated.stop()
        if self._loggers and spider.crawl.crawled > self._logged:
            self._log(spider.crawl)
        for logger in self._loggers:
            logger.close()

"""Progress of long work: a bar on a terminal, otherwise a line every 30 seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from tqdm import tqdm

_SECONDS: Final = 30.0
"""Seconds between lines; shorter work prints none."""

T = TypeVar("T")


class Lines:
    """Progress lines on standard error, each with the time of day, at most one in _SECONDS."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = self._last = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds that the work has taken so far."""
        return time.monotonic() - self._began

    def due(self) -> bool:
        """Return whether it is time for a line."""
        return time.monotonic() - self._last >= _SECONDS

    def say(self, how_far: str) -> None:
        """Print a line."""
        self._last = time.monotonic()
        now = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")
        with suppress(OSError):  # whoever read that has gone; the work goes on
            print(f"{now} {self._what}: {how_far}", file=sys.stderr, flush=True)  # noqa: T201 - this is what prints

    def say_time(self) -> None:
        """Print how long the work has taken, if a line is due; for work of unknown size."""
        if self.due():
            self.say(f"{_tqdm().format_interval(self.seconds)} so far")


class Progress(Generic[T]):
    """Progress of a piece of work: the items iterated over so far, or what :meth:`update` has added.

    ``bar`` says whether a bar is shown; by default only if standard error is a terminal. ``initial`` items were done
    before. ``unit_scale`` shortens numbers (1.2M). Other names are tqdm's.
    """

    def __init__(
        self,
        items: Iterable[T] | None = None,
        desc: str = "",
        total: int | None = None,
        *,
        unit: str,
        initial: int = 0,
        unit_scale: bool = False,
        bar: bool | None = None,
    ) -> None:
        self._items = () if items is None else items
        self._total = len(items) if total is None and isinstance(items, Sized) else total
        self._unit, self._unit_scale = unit, unit_scale
        self._initial = self._done = initial
        self._lines = Lines(desc)
        self._bar: tqdm[Any] | None = None
        if sys.stderr.isatty() if bar is None else bar:
            self._bar = _tqdm()(desc=desc, total=self._total, unit=unit, initial=initial, unit_scale=unit_scale)

    def __iter__(self) -> Iterator[T]:
        with self:
            for item in self._items:
                yield item
                self.update()

    def __enter__(self) -> Progress[T]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()

    def update(self, count: int = 1) -> None:
        """Count ``count`` more items as done."""
        self._done += count
        if self._bar is not None:
            self._bar.update(count)
        elif self._lines.due():
            self._lines.say(self._how_far())

    def _how_far(self) -> str:
        done = self._number(self._done)
        if not self._total:
            return f"{done}{self._unit}"
        left = self._lines.seconds * (self._total - self._done) / max(self._done - self._initial, 1)
        share = f"{self._done / self._total:.0%}, {_tqdm().format_interval(max(left, 0))} left"
        return f"{done} of {self._number(self._total)}{self._unit}, {share}"

    def _number(self, count: int) -> str:
        return _tqdm().format_sizeof(count) if self._unit_scale else f"{count:,}"


def _tqdm() -> type[tqdm[Any]]:
    # here, as it takes 8 ms and 1 MB, which a crawl without a bar saves
    from tqdm import tqdm

    return tqdm

"""The parts of one crawl: which of them have a hook, and which one raised an error."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from crawl4llm.base.terminal import harmless
from crawl4llm.parts.part import Needs, Part, Shelf

if TYPE_CHECKING:
    from crawl4llm.policies import Pieces

P = TypeVar("P", bound=Part)


class Parts:
    """Parts in the order of their hooks."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self._parts = tuple(parts)
        self.answering = next((part for part in self._parts if type(part).answers is not Part.answers), None)
        """The part that answers documents without a request, if there is one."""

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts)

    def having(self, hook: str) -> Sequence[Callable[..., Any]]:
        """Return the bound methods of the parts that have a hook."""
        return [getattr(part, hook) for part in self if getattr(type(part), hook) is not getattr(Part, hook)]

    def get(self, kind: type[P]) -> P | None:
        """Return the part of a class; None if the crawl does not have it."""
        return next((part for part in self if isinstance(part, kind)), None)

    def begun(self, counts: Counter[str], shelf: Shelf | None = None) -> Parts:
        """Return copies of the parts for a crawl or a partition, which share files but no state. ``shelf``: that of the
        frontier, if a part sets documents aside."""
        parts = [copy(part) for part in self]
        for part in parts:
            part.counts = counts
            if shelf is not None:
                part.shelf = shelf
            part.begin()
        begun = Parts(parts)
        for part in parts:
            part.answering = begun.answering
        return begun

    # -- of all parts together --------------------------------------------------------------------------------------

    def needs(self) -> Needs:
        """Return the facts that they need about each page."""
        needs = [part.needs() for part in self]
        return Needs(
            signature=any(one.signature for one in needs),
            known_texts=next((one.known_texts for one in needs if one.known_texts is not None), None),
            classifiers=tuple(classifier for one in needs for classifier in one.classifiers),
            lines=any(one.lines for one in needs),
        )

    def identity(self) -> dict[str, Any]:
        """Return the values that decide which pages are crawled in which order; those of external parts by their paths,
        under ``parts``."""
        ours: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for part in self:
            kind = type(part)
            if kind.__module__.startswith("crawl4llm."):
                ours.update(part.identity())
            else:
                others[f"{kind.__module__}.{kind.__qualname__}"] = json.loads(json.dumps(dict(part.identity())))
        return {**ours, "parts": others} if others else ours

    def keep_in(self, pieces: Pieces) -> None:
        """Keep their state in pieces. Raises StoreError."""
        for part in self:
            part.keep_in(pieces)

    def save(self) -> dict[str, Any]:
        """Return the rest of their state by name, in JSON values."""
        saved = {part.name: part.save() for part in self}
        return {name: state for name, state in saved.items() if state is not None}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore the state that :meth:`save` returned."""
        for part in self:
            if part.name in state:
                part.load(state[part.name])

    def whose(self, error: BaseException) -> str:
        """Return a short text with the source of an error and its message: the part whose code raised or passed it."""
        traceback = error.__traceback__
        while traceback is not None:
            if isinstance(part := traceback.tb_frame.f_locals.get("self"), Part):
                path = f"{type(part).__module__}.{type(part).__qualname__}"
                return f"the part {path} raised {type(error).__name__}: {harmless(str(error))[:200]}"
            traceback = traceback.tb_next
        return "an internal error"

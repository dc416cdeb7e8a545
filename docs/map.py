"""Draws docs/architecture.svg, the rooms of the code and who imports whom, from the import graph: ``make map``."""

from __future__ import annotations

import sys
from importlib import import_module
from itertools import chain
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "architecture.svg"

_WIDTH, _BOX, _FLOOR, _GAP = 920, 46, 84, 16
_STYLE = (
    "text{font:13px sans-serif;fill:#1a1a2e}.room{font-weight:bold}.says{font-size:11px;fill:#555}"
    "rect{fill:#eef3fb;stroke:#4a6fa5;rx:6}path{stroke:#8a94a6;fill:none;marker-end:url(#head)}"
)
_HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0,0L8,4L0,8z" style="fill:#8a94a6;stroke:none;marker-end:none"/></marker></defs>'
)
_LONGEST = 62
"""Characters of what a room says of itself, where it has a floor to itself; others have their share."""


def floors() -> list[list[str]]:
    """Return the rooms by floor, the highest first, as the contract in pyproject.toml has them."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = config["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[room.strip() for room in layer.partition(":")[0].split("|")] for layer in layers]


def arrows(rooms: set[str]) -> set[tuple[str, str]]:
    """Return which room imports which at run time, without arrows that a way over other rooms stands for."""
    graph = grimp.build_graph("crawl4llm", "simulate", exclude_type_checking_imports=True)
    direct: dict[str, set[str]] = {room: set() for room in rooms}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            importer, room = _room(module, rooms), _room(imported, rooms)
            if importer and room and importer != room:
                direct[importer].add(room)
    below = {room: _reached(room, direct) for room in rooms}
    return {(one, to) for one in rooms for to in direct[one] if not any(to in below[via] for via in direct[one])}


def draw() -> str:
    """Return the picture as SVG."""
    rows = floors()
    height = len(rows) * _FLOOR + _GAP
    places: dict[str, tuple[float, float, float]] = {}
    boxes = []
    for number, row in enumerate(rows):
        width = (_WIDTH - _GAP * (len(row) + 1)) / len(row)
        for place, room in enumerate(row):
            x, y = _GAP + place * (width + _GAP), _GAP + number * _FLOOR
            places[room] = (x, y, width)
            boxes.append(
                f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{_BOX}"/>'
                f'<text class="room" x="{x + 10:g}" y="{y + 19}">{room.removeprefix("crawl4llm.")}</text>'
                f'<text class="says" x="{x + 10:g}" y="{y + 36}">{escape(_says(room, len(row)))}</text>'
            )
    lines = [_arrow(places[one], places[to], slot) for slot, (one, to) in enumerate(sorted(arrows(set(places))))]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}">',
            f"<title>The rooms of crawl4llm: each imports from rooms below it only</title><style>{_STYLE}</style>",
            _HEAD,
            *chain(lines, boxes),
            "</svg>\n",
        ]
    )


def _room(module: str, rooms: set[str]) -> str | None:
    return next((room for room in rooms if module == room or module.startswith(f"{room}.")), None)


def _reached(room: str, direct: dict[str, set[str]]) -> set[str]:
    return direct[room].union(*(_reached(below, direct) for below in direct[room]))


def _says(room: str, beside: int) -> str:
    """The first line of the room's docstring."""
    first = (import_module(room).__doc__ or "").split("\n")[0].partition(": ")
    said, longest = (first[2] or first[0]), 2 * _LONGEST // beside
    return said if len(said) <= longest else f"{said[: longest - 3].rsplit(' ', 1)[0]} ..."


def _arrow(one: tuple[float, float, float], to: tuple[float, float, float], slot: int) -> str:
    """A curve from the lower edge of a box to the upper edge of another one."""
    shift = (slot % 7 - 3) / 8
    x1, y1 = one[0] + one[2] * (0.5 + shift), one[1] + _BOX
    x2, y2 = to[0] + to[2] * (0.5 + shift), to[1]
    return f'<path d="M{x1:.0f},{y1:.0f}C{x1:.0f},{y1 + 20:.0f} {x2:.0f},{y2 - 20:.0f} {x2:.0f},{y2:.0f}"/>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")

"""Rooms and their doors: what a room lets others use is in its ``__init__.pyi``, and nobody goes past it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

PROJECT = Path(__file__).resolve().parents[1]
DOORS = (
    *(f"crawl4llm.{room}" for room in "warc optouts scoring policies frontier parts crawl live cluster engine".split()),
    "simulate",
)

ALONE = "crawl4llm.tools.trainlm.trainer"
"""A folder that is copied to machines without this project: its files import each other by dots, and nothing else of
it."""


class Import(NamedTuple):
    """A name that a file imports."""

    file: Path
    line: int
    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(PROJECT)}:{self.line} imports {self.name or 'itself'} of {self.module}"


@cache
def modules() -> dict[str, Path]:
    """Every file of the package, by the name of its module."""
    paths = [path for top in ("crawl4llm", "simulate") for path in (PROJECT / top).rglob("*.py")]
    names = [path.relative_to(PROJECT).with_suffix("").parts for path in paths]
    return {
        ".".join(name[:-1] if name[-1] == "__init__" else name): path for name, path in zip(names, paths, strict=True)
    }


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(module: str) -> list[Import]:
    """What a module imports of the package, those for types and those in functions too; of a room that it imports whole
    what it uses."""
    path = modules()[module]
    found = []
    rooms: dict[str, str] = {}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            alone = module.rpartition(".")[0] == ALONE
            ours = node.module.split(".")[0] in {"crawl4llm", "simulate"}
            assert not (ours if alone else node.level), f"{path}:{node.lineno} imports by {'name' if alone else 'dots'}"
            name = f"{ALONE}.{node.module}" if node.level else node.module
            found += [Import(path, node.lineno, name, alias.name) for alias in node.names]
            rooms |= {alias.asname or alias.name: f"{name}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found += [Import(path, node.lineno, alias.name, "") for alias in node.names]
            rooms |= {alias.asname or alias.name: alias.name for alias in node.names}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and rooms.get(node.value.id) in DOORS:
            found.append(Import(path, node.lineno, rooms[node.value.id], node.attr))
    return [one for one in found if one.module in modules()]


def room_of(module: str) -> str | None:
    return next((room for room in DOORS if module == room or module.startswith(f"{room}.")), None)


def test_other_rooms_import_what_the_door_has() -> None:
    past = [
        str(one)
        for module in modules()
        for one in imports(module)
        if (room := room_of(one.module)) not in {None, room_of(module)} and one.module != room
    ]
    assert past == []


def test_private_modules_are_imported_in_their_room() -> None:
    past = []
    for module in modules():
        for one in imports(module):
            full = f"{one.module}.{one.name}" if f"{one.module}.{one.name}" in modules() else one.module
            parts = full.split(".")
            for place, part in enumerate(parts):
                if part.startswith("_") and part != "__main__" and not _within(module, ".".join(parts[:place])):
                    past.append(str(one))
    assert past == []


def _within(module: str, package: str) -> bool:
    """Whether a module may see the private ones of a package: those of tools are shared with the commands."""
    return f"{module}.".startswith(f"{package}.") or (package == "crawl4llm.tools" and "commands" in module)


@pytest.mark.parametrize("room", DOORS)
def test_a_door_has_what_it_says(room: str) -> None:
    door = import_module(room)
    assert door.__all__
    for name in door.__all__:
        assert getattr(door, name) is not None or name == "NULL"


def test_no_door_has_what_nobody_uses() -> None:
    """A name of a door is used by another room, or documented, or is what users write parts, policies and fetchers
    with."""
    documented = "".join(path.read_text() for path in (PROJECT / "docs").rglob("*.md"))
    used = {(one.module, one.name) for module in modules() for one in imports(module)}
    unused = [
        f"{room}.{name}"
        for room in DOORS
        for name in import_module(room).__all__
        if (room, name) not in used and name not in documented
    ]
    assert unused == []


def test_no_files_import_each_other() -> None:
    """Circles, those through types and through functions too."""
    needs = {
        module: {full if (full := f"{one.module}.{one.name}") in modules() else one.module for one in imports(module)}
        for module in modules()
    }
    left = {module: set(of) - {module} for module, of in needs.items()}
    while leaves := [module for module, of in left.items() if not of]:
        for module in leaves:
            del left[module]
        for of in left.values():
            of.difference_update(leaves)
    in_circles = {module for module, of in left.items() if any(module in left[other] for other in of)}
    assert sorted(in_circles) == []
    assert sorted(left) == []


def test_imports_in_functions_say_why() -> None:
    """With a comment on one of the lines, or above them."""
    without = [
        f"{path.relative_to(PROJECT)}:{first.lineno}"
        for path in modules().values()
        for first, last in _runs(tree(path))
        if not _says_why(path.read_text().splitlines(), first.lineno, last.end_lineno or 0)
    ]
    assert without == []


def _says_why(lines: list[str], first: int, last: int) -> bool:
    return lines[first - 2].lstrip().startswith("#") or any("#" in line for line in lines[first - 1 : last])


def _runs(module: ast.Module) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """The first and last of the imports that stand together in the body of a function."""
    functions = [node for node in ast.walk(module) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    inside = {node for function in functions for node in ast.walk(function)}
    for node in inside:
        for body in (getattr(node, "body", None), getattr(node, "orelse", None)):
            run: list[ast.stmt] = []
            for statement in [*body, None] if isinstance(body, list) else []:
                if isinstance(statement, (ast.Import, ast.ImportFrom)):
                    run.append(statement)
                elif run:
                    yield run[0], run[-1]
                    run = []

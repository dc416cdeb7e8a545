"""Which tests start processes: `make check` leaves them out, as commands and servers take most of the time."""

from __future__ import annotations

import inspect
import multiprocessing
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
import scrapy_server

TESTS = Path(__file__).resolve().parents[1]
_STARTERS = (subprocess, multiprocessing, scrapy_server)
_SERVER = scrapy_server.__name__
_FIXTURES = {"demo_web", "small_demo_web"}
"""Fixtures that start processes by code of the package; a test that has a demo web crawls it."""
_Part = FunctionType | type | ModuleType


def starts_processes(item: pytest.Item) -> bool:
    """Whether a test or one of its fixtures may start a process, as far as their code tells."""
    if not isinstance(item, pytest.Function):
        return False
    fixtures = [one.func for name in item.fixturenames for one in item._fixtureinfo.name2fixturedefs.get(name, ())]
    return not _FIXTURES.isdisjoint(item.fixturenames) or may_start((item.function, *fixtures))


@cache
def may_start(functions: tuple[Any, ...]) -> bool:
    """Whether functions of the tests lead to one of the modules that start processes."""
    found: set[_Part] = set()
    ahead = list(_parts(functions))
    while ahead:
        one = ahead.pop()
        if one in _STARTERS or getattr(one, "__module__", "") == _SERVER:
            return True
        if one not in found and _is_of_tests(one):
            found.add(one)
            ahead += _inner(one)
    return False


def _parts(values: Iterable[Any]) -> Iterator[_Part]:
    """Functions without what wraps them, such as ``contextmanager``; classes and modules."""
    return (one for one in map(inspect.unwrap, values) if isinstance(one, _Part))


@cache
def _inner(one: _Part) -> list[_Part]:
    """Return what a function names, of modules of the tests what it names of theirs; a class's methods and bases."""
    if isinstance(one, type):
        return [*_parts(vars(one).values()), *one.__bases__]
    if isinstance(one, ModuleType):
        return []
    names = set(_names(one.__code__))
    named = list(_parts(one.__globals__[name] for name in names if name in one.__globals__))
    modules = [module for module in named if isinstance(module, ModuleType) and _is_of_tests(module)]
    return [*named, *_parts(vars(module)[name] for module in modules for name in names if name in vars(module))]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _names(one)


@cache
def _is_of_tests(one: _Part) -> bool:
    try:
        return Path(inspect.getfile(one)).is_relative_to(TESTS)
    except (OSError, TypeError):  # it is built in
        return False

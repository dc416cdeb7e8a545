"""Tests that start processes are known by their code, so that ``make check`` can leave them out."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import crawl_helpers
import pytest
from crawl_helpers import scrapy
from process_tests import may_start, starts_processes


def runs_a_command() -> None:
    scrapy("version")


@contextmanager
def with_a_program() -> Iterator[None]:
    subprocess.run(["true"], check=True)
    yield


class Holder:
    def begin(self) -> None:
        with with_a_program():
            pass


def within_a_function() -> None:
    def inner() -> Holder:
        return Holder()

    inner()


def by_a_module() -> None:
    crawl_helpers.crawl(None, crawl_helpers.PROJECT)


def reads_a_log() -> None:
    crawl_helpers.crawl_log(crawl_helpers.PROJECT)


@pytest.mark.parametrize("function", [runs_a_command, with_a_program, within_a_function, by_a_module])
def test_what_leads_to_a_process(function: object) -> None:
    assert may_start((function,))


def test_what_does_not() -> None:
    assert not may_start((reads_a_log, test_what_leads_to_a_process))


def test_items_are_marked(request: pytest.FixtureRequest) -> None:
    marked = {item.name for item in request.session.items if item.get_closest_marker("processes")}
    assert request.node.name not in marked
    assert all(starts_processes(item) == (item.name in marked) for item in request.session.items[:20])

"""Settings that a crawl does not heed: one line each, where the command line gives them."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawl_helpers import Web, crawl
from scrapy.settings import Settings

from crawl4llm.engine.settings import groups, unheeded
from crawl4llm.options import read_options


def lines(profile: str, priority: str = "cmdline", **given: object) -> list[str]:
    settings = Settings()
    settings.setdict({"CORPUS": "demo", **given}, priority=priority)
    return list(unheeded(settings, read_options(settings), profile))


@pytest.mark.parametrize(
    ("given", "profile", "said"),
    [
        ({"HARMONIC_RANKS": "x"}, "simulation", "HARMONIC_RANKS has no effect here: it is for URL_POLICY=harmonic"),
        ({"DNS_HOSTS": "hosts"}, "simulation", "DNS_HOSTS has no effect here: it is for live crawls"),
        ({"CRAWL_PARTITIONS": 4}, "simulation", "CRAWL_PARTITIONS has no effect here: it is for crawls with STORAGE"),
        ({"SCORE_CACHE": "x"}, "live", "SCORE_CACHE has no effect here: it is for simulations"),
        ({"CLUSTER_LEASE": 4}, "live", "CLUSTER_LEASE has no effect here: it is for crawls with CLUSTER"),
        ({"SIMULATION_CAPACITY": 4}, "live", "SIMULATION_CAPACITY has no effect here: it is for simulations"),
        ({"COMMIT_FSYNC": 0}, "live", "COMMIT_FSYNC has no effect here: it is for crawls with JOBDIR or STORAGE"),
        ({"BOUND_SCORES": "x"}, "simulation", "BOUND_SCORES has no effect here: it is for URL_POLICY=bound"),
        ({"HARMONIC_RANKS": "x"}, "live", "HARMONIC_RANKS has no effect here: it is for URL_POLICY=harmonic"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else None,
)
def test_what_is_not_heeded(given: dict[str, object], profile: str, said: str) -> None:
    assert lines(profile, **given) == [said]
    assert lines(profile, priority="project", **given) == []


@pytest.mark.parametrize(
    ("given", "profile"),
    [
        ({"HARMONIC_RANKS": "x", "URL_POLICY": "harmonic"}, "simulation"),
        ({"HARMONIC_RANKS": "x", "URL_POLICY": "mine.Policy"}, "simulation"),
        ({"DNS_HOSTS": "hosts"}, "live"),
        ({"DNS_HOSTS": ""}, "simulation"),
        ({"CRAWL_PARTITIONS": 4, "STORAGE": "file:///x"}, "simulation"),
        ({"COMMIT_FSYNC": 0, "JOBDIR": "job"}, "simulation"),
        ({"SCORE_CACHE": "x", "SIMULATION_OWNER_DELAY": 1, "SIMULATION_CAPACITY": 4}, "simulation"),
    ],
)
def test_what_is_heeded(given: dict[str, object], profile: str) -> None:
    assert lines(profile, **given) == []


def test_all_names_are_settings() -> None:
    options = read_options(Settings())
    known = {name.upper() for name in vars(options)}
    assert {name for names, *_ in groups(options, "live", has_jobdir=False) for name in names} <= known


def test_a_crawl_says_so(demo_web: Web, tmp_path: Path) -> None:
    """Nothing else is said, and the crawl goes on."""
    (tmp_path / "file").touch()
    given = {"HARMONIC_RANKS": "none", "CRAWL_PARTITIONS": 4, "SCORE_CACHE": tmp_path / "file"}
    done = crawl(demo_web, tmp_path / "output", CRAWL_MAX_PAGES=5, **given)
    assert done.returncode == 0, done.stderr
    warnings = [line.partition("WARNING: ")[2] for line in done.stderr.splitlines() if "WARNING" in line]
    assert sorted(line.partition(" ")[0] for line in warnings) == ["CRAWL_PARTITIONS", "HARMONIC_RANKS", "SCORE_CACHE"]
    ends = "it is for crawls with STORAGE", "it is for URL_POLICY=harmonic", "is not used: File exists"
    assert all(line.endswith(ends) for line in warnings)

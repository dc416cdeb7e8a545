"""The versions of dependencies that are accepted: none with an advisory that docs/install.md lists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli", reason="Python 3.10 has no TOML parser")

PROJECT = Path(__file__).resolve().parents[1]
_ROW = re.compile(r"^\|([\w.-]+)\|([\d.]+)\|((?:CVE|PYSEC|GHSA)-\S.*)\|$", re.MULTILINE)


def requirements() -> list[Requirement]:
    """All that pyproject.toml asks for: to build, to run, and in extras."""
    content = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    project = content["project"]
    lists = [content["build-system"]["requires"], project["dependencies"], *project["optional-dependencies"].values()]
    return [found for names in lists for found in map(Requirement, names) if found.name != "crawl4llm"]


def floor(requirement: Requirement) -> Version | None:
    """The lowest version that a requirement takes; None where it takes any."""
    lowest = [Version(one.version) for one in requirement.specifier if one.operator in {">=", "=="}]
    return max(lowest, default=None)


def test_each_dependency_has_a_floor() -> None:
    assert [str(one) for one in requirements() if floor(one) is None] == []


def test_no_floor_is_below_the_table_of_advisories() -> None:
    table = {canonicalize_name(name): Version(version) for name, version, _ in _ROW.findall(table_text())}
    assert len(table) >= 15
    assert {"scrapy", "lxml", "twisted"} <= table.keys()
    asked = [(canonicalize_name(one.name), floor(one)) for one in requirements()]
    assert {name: lowest for name, lowest in asked if name in table and (lowest is None or lowest < table[name])} == {}
    assert table.keys() - {name for name, _ in asked} == set()


def table_text() -> str:
    return (PROJECT / "docs/install.md").read_text().partition("## Lowest versions")[2].partition("\n## ")[0]


def test_an_audit_without_the_network_is_a_line() -> None:
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    env = {**os.environ, **nowhere, "no_proxy": "", "NO_PROXY": "", "PYTHON": sys.executable}
    done = subprocess.run([PROJECT / ".ci/audit"], env=env, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("audit: skipped, as neither ")
    assert done.stdout.count("\n") == 1

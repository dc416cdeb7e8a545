"""The commands of README and docs run as they stand there, each page's in a project of its own."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_helpers import PROJECT, Web
from docs_helpers import PAGES, blocks, make_crawls, make_project, run
from forked_programs import forked_programs

SLOW = {"building.md", "cookbook.md", "export.md"}
"""Pages whose commands take more than some seconds."""
RUN = [page for page in PAGES if any(not block.why_not for block in blocks(page))]


@pytest.fixture(scope="module")
def project(small_demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("docs") / "project"
    make_project(folder, small_demo_web)
    with forked_programs(folder / "bin", "scrapy"):
        make_crawls(folder)
        yield folder


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow) if page.name in SLOW else page for page in RUN],
    ids=lambda page: page.stem,
)
def test_commands_of_a_page(page: Path, project: Path, tmp_path: Path) -> None:
    shutil.copytree(project, tmp_path / "project", symlinks=True)
    for block in blocks(page):
        if not block.why_not:
            run(tmp_path / "project", block.text)


def test_what_is_not_run_has_a_reason() -> None:
    """A reason names the test that runs it instead, if there is one; each block says of what kind it is."""
    for page in PAGES:
        assert not blocks(page, ""), f"{page.name}: a block without a language, such as sh, json or text"
        for reason in (block.why_not for block in blocks(page) if block.why_not):
            for named in re.findall(r"tests/\S+\.py", reason):
                assert (PROJECT / named).is_file(), f"{page.name}: {named}"


def test_python_of_the_guide(project: Path, tmp_path: Path) -> None:
    """Each block goes on where the one before ended."""
    pytest.importorskip("pandas")
    shutil.copytree(project, tmp_path / "project", symlinks=True)
    code = "\n".join(block.text for block in blocks(PROJECT / "docs/python.md", "python"))
    (tmp_path / "project/guide.py").write_text(code)
    assert "crawls/0003 " in run(tmp_path / "project", "python guide.py")

"""The documentation says what the code does."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest
from crawl_helpers import PROJECT

from crawl4llm.base import received, series, sorted_file
from crawl4llm.cluster import objects
from crawl4llm.commands.reference import pages
from crawl4llm.crawl import jobdir
from crawl4llm.options import Options
from crawl4llm.scoring import model_rules
from crawl4llm.tools import _learnt
from simulate import indexes
from simulate.build import _FORMAT as BUILD_FORMAT


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_reference_page_is_true(page: Path) -> None:
    assert page.read_text() == pages()[page], "run: python -m crawl4llm.commands.reference"


def test_profiles_set_what_exists() -> None:
    """A setting of ours in settings/ that is not in the table would do nothing."""
    ours = {name.upper() for name in Options.__dataclass_fields__}
    prefixes = ("CRAWL_", "SCORER_", "SCORING_", "WARC_", "SIMULATION_", "CLUEWEB22_", "TEXT_", "URL_POLICY", "CORPUS")
    prefixes += ("SCOPE_",)
    for profile in (PROJECT / "settings").glob("*.py"):
        named = set(re.findall(r"^([A-Z0-9_]+) =", profile.read_text(), re.MULTILINE))
        assert {name for name in named if name.startswith(prefixes)} <= ours


def test_settings_named_in_the_documentation_exist() -> None:
    ours = {name.upper() for name in Options.__dataclass_fields__}
    for page in (PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))):
        text = page.read_text()
        of_others = set(re.findall(r"^ +SETTINGS = {\"([A-Z_]+)\"", text, re.MULTILINE))  # of a policy shown there
        named = set(re.findall(r"-s ([A-Z0-9_]+)=", text)) - of_others
        known = ours | {"NAME", "EXTENSIONS", "LOG_FORMAT", "LOG_LEVEL", "JOBDIR", "USER_AGENT"}
        unknown = named - known
        assert not unknown, f"{page.name} names {unknown}"


def test_readme_opens_with_the_two_commands() -> None:
    commands = re.findall(r"^make \w+", (PROJECT / "README.md").read_text(), re.MULTILINE)
    assert commands[:2] == ["make crawl", "make test"]


def test_links_lead_somewhere() -> None:
    for page in (PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_links_to_pages_have_titles() -> None:
    """Of a page or of a section of it, not its path; in the index, that of the page."""
    for page in (PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))):
        named = re.findall(r"\[`?[\w./-]+\.md`?\]\([^)]+\)", page.read_text())
        assert not named, f"{page.name}: {named[0]}"
    index = PROJECT / "docs/index.md"
    for title, name in re.findall(r"^- \[(.+)\]\(([\w-]+\.md)\)", index.read_text(), re.MULTILINE):
        assert (index.parent / name).read_text().partition("\n")[0] == f"# {title}"


def test_the_index_lists_each_page_once() -> None:
    listed = re.findall(r"^- \[.+\]\(([\w-]+\.md)\)", (PROJECT / "docs/index.md").read_text(), re.MULTILINE)
    pages = {page.name for page in (PROJECT / "docs").glob("*.md")} - {"index.md"}
    assert set(listed) == pages
    assert len(listed) == len(pages)


def test_nothing_is_installed_from_an_index_that_does_not_have_it() -> None:
    """crawl4llm is not published: extras are those of a wheel or a checkout."""
    for page in (PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").glob("*.md"))):
        assert not re.search(r"pip install '?crawl4llm\[", page.read_text()), page.name


def test_extras_are_those_of_the_project() -> None:
    told = (PROJECT / "docs/install.md").read_text().partition("## Extras")[2].partition("\n## ")[0]
    known = set(metadata.metadata("crawl4llm").get_all("Provides-Extra") or ())
    assert set(re.findall(r"`([a-z]+)`", told)) >= known


def test_formats_of_the_upgrades_page_are_those_of_the_code() -> None:
    table = dict(re.findall(r"^\|`([\w.*]+)`[^|]*\|(\d+)\|", (PROJECT / "docs/upgrades.md").read_text(), re.MULTILINE))
    numbers = {
        "job.json": jobdir.FORMAT,
        "crawl.json": objects.FORMAT,
        "settings.json": received.RUN_FORMAT,
        "series.jsonl": series.FORMAT,
        "manifest.json": received.EXPORT_FORMAT,
        "request.json": received.WORK_FORMAT,
        "index.json": indexes.FORMAT,
        "build.json": BUILD_FORMAT,
        "*.known": sorted_file.FORMAT,
        "trainlm.json": _learnt.FORMAT,
        "MODEL.json": model_rules._FORMAT,
    }
    assert {name: int(number) for name, number in table.items()} == numbers


def test_each_page_says_in_its_first_line_for_whom_it_is() -> None:
    for page in sorted((PROJECT / "docs").glob("*.md")):
        assert re.match(r"# .+\n\nFor \w+", page.read_text()), page.name

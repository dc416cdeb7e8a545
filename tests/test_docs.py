"""The documentation says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from crawl_helpers import PROJECT

from benchmarks.report import PAGE, page as performance_page
from crawl4llm.commands.reference import pages
from crawl4llm.options import Options


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_reference_page_is_true(page: Path) -> None:
    assert page.read_text() == pages()[page], "run: python -m crawl4llm.commands.reference"


def test_performance_page_shows_what_was_measured() -> None:
    assert PAGE.read_text() == performance_page(), "run: python -m benchmarks.report"


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


def test_each_page_says_in_its_first_line_for_whom_it_is() -> None:
    for page in sorted((PROJECT / "docs").glob("*.md")):
        assert re.match(r"# .+\n\nFor \w+", page.read_text()), page.name

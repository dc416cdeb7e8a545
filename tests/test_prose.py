"""The prose check that `make lint` runs: what it reads, what it marks, and when it fails."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[1] / "docs" / "prose.py"
CHECK = runpy.run_path(str(PROGRAM))

MARKED = {
    "What waits in the frontier is shown first.": "starts with a clause",
    "The first line says of what a crawl was made, and of what is left.": "a clause as a noun",
    "These pages are for who tunes a crawl.": "who without a person",
    "The index is made anew if the corpus has changed.": "not English",
    "The answer is kept, where there is one.": "where for if",
    "One page " + "and one more " * 10 + "is too long.": "35 words",
}
PAGE = """# Title of this page here

A plain sentence that
runs on. What waits is
marked here.

    What waits in code is not.

> What waits in a quotation is not.

```sh
echo What waits in a block is not.
```

| a cell | What waits in a cell is |

<!-- begin: a command -->
What waits between markers is not.
<!-- end -->
Somebody wrote "What waits is what it takes" about `what is it`.
<!-- What follows is written by a command. -->
What waits below is not.
"""
MODULE = '''"""What waits in a docstring is marked."""
QUERY = "SELECT what FROM texts WHERE who IS NULL AND day = what is"
SAID = "It starts. What waits is there " + f"marked with {len(QUERY)} places of what is left"

def told(waits: bool) -> str:
    """Return a text.

    >>> told(True)  # What waits in an example is not
    """
    return "what is it" if waits else "nothing of it was to be had"
'''
TEMPLATE = """<style>p { color: red }</style>
{% if waits %}<h2>What waits, <em>and</em> why</h2>{% endif %}
<script>const said = "What waits in a script";</script>
"""
SCRIPT = """// What waits in a comment is not.
say("a class", `There are ${count} pages of what was crawled`);
"""


@pytest.mark.parametrize("sentence", MARKED)
def test_a_mark_has_its_reason(sentence: str) -> None:
    assert CHECK["reasons"](sentence) == [MARKED[sentence]]


def test_a_plain_sentence_has_no_mark() -> None:
    assert CHECK["reasons"]("The crawl stops if no documents are left in the frontier.") == []
    assert CHECK["reasons"]("What does a crawl need?") == []


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [("a.md", PAGE, [4, 15]), ("a.py", MODULE, [1, 3, 3, 10]), ("a.html", TEMPLATE, [2]), ("a.js", SCRIPT, [2])],
)
def test_only_what_people_read_is_read(tmp_path: Path, name: str, text: str, lines: list[int]) -> None:
    (tmp_path / name).write_text(text)
    checked = check(tmp_path / name)
    found = [int(row.split(":")[1]) for row in checked.stdout.splitlines()[:-1]]
    assert found == lines, checked.stdout
    assert checked.returncode == 1


def test_it_fails_above_the_share(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    plain, marked = "The crawl is at its end. ", "What waits is shown. "
    page.write_text(19 * plain + marked)
    assert check(page).returncode == 0
    page.write_text(18 * plain + marked)
    failed = check(page)
    assert failed.returncode == 1
    assert failed.stdout.splitlines()[-1] == "1 of 19 sentences are marked (5.3%); at most 5% and 600 may be"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def")
    for name in ("a.py", "absent.md"):
        checked = check(tmp_path / name)
        assert checked.returncode == 2
        assert checked.stderr.startswith(f"{tmp_path / name}: cannot be read")
        assert checked.stderr.count("\n") == 1


def check(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, PROGRAM, path], capture_output=True, text=True, check=False)

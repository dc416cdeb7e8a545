"""Lists of regular expressions: read from settings and files, and searched in time that nobody can blow up."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from crawl4llm.base.errors import InputError
from crawl4llm.base.expressions import LONGEST, MOST, Expressions

FILE = "# what is denied\n\n/tag/\n  [?&]sort=(asc|desc)$\n"


def test_expressions_and_files_of_them_tell_where_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deny.txt").write_text(FILE)
    some = Expressions(["^http://a\\.test/x", "./deny.txt", "/tags?/"], "SCOPE_DENY")
    assert some.first_in("http://a.test/x/tag/") == r"SCOPE_DENY ^http://a\.test/x"
    assert some.first_in("http://b.test/tag/") == "SCOPE_DENY deny.txt, line 3 /tag/"
    assert some.first_in("http://b.test/?sort=asc") == "SCOPE_DENY deny.txt, line 4 [?&]sort=(asc|desc)$"
    assert some.first_in("http://b.test/tags/") == "SCOPE_DENY /tags?/"
    assert some.first_in("http://b.test/?sort=asc&x") is None
    whole = Expressions([str(tmp_path / "deny.txt")], "SCOPE_DENY")
    assert whole.first_in("http://b.test/tag/") == f"SCOPE_DENY {tmp_path}/deny.txt, line 3 /tag/"
    assert whole.digest != some.digest


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("ab(", "missing ): ab("),
        ("(?=x)", "invalid perl operator: (?="),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("(a{1000}){1000}", "invalid repetition size: {1000}"),
        ("x" * (LONGEST + 1), f"has more than {LONGEST:,} characters"),
    ],
)
def test_one_that_cannot_be_used_is_named_in_one_line(tmp_path: Path, expression: str, reason: str) -> None:
    with pytest.raises(InputError) as of_setting:
        Expressions(["fine", expression], "SCOPE_DENY")
    path = tmp_path / "deny.txt"
    path.write_text(f"fine\n{expression}\n")
    with pytest.raises(InputError) as of_file:
        Expressions([str(path)], "SCOPE_ALLOW")
    for error, place in ((of_setting, "SCOPE_DENY: "), (of_file, f"SCOPE_ALLOW {path}, line 2: ")):
        message = str(error.value)
        assert message.startswith(place)
        assert reason in message
        assert expression[:50] in message.replace("\\\\", "\\")
        assert "\n" not in message
        assert len(message) < 500


def test_a_file_that_is_not_there_or_too_long(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^SCOPE_DENY nowhere/deny\.txt cannot be read: No such file"):
        Expressions(["./nowhere/deny.txt"], "SCOPE_DENY")
    path = tmp_path / "deny.txt"
    path.write_text("".join(f"/{number}/\n" for number in range(MOST + 1)))
    with pytest.raises(InputError, match="SCOPE_DENY has more than 10,000 expressions"):
        Expressions([str(path)], "SCOPE_DENY")
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(InputError, match="cannot be read"):
        Expressions([str(path)], "SCOPE_DENY")


@pytest.mark.parametrize("expression", ["(x+x+)+y", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*(.*)*(.*)*z"])
def test_no_expression_blows_up(expression: str) -> None:
    some = Expressions([expression, "(x|y)*z$"], "SCOPE_DENY")
    began = time.process_time()
    for text in ("x" * 60_000, "a" * 60_000 + "!", "http://" + "é" * 60_000):
        some.first_in(text)
    assert time.process_time() - began < 2.0


def test_many_are_searched_together_and_each_is_found() -> None:
    some = Expressions([rf"^/item-{number}/(a+)+$" for number in range(1000)], "SCOPE_DENY")
    for number in (0, 49, 50, 999):
        assert some.first_in(f"/item-{number}/aaa") == rf"SCOPE_DENY ^/item-{number}/(a+)+$"
    assert some.first_in("/item-1000/aaa") is None


def test_texts_that_are_no_unicode_are_searched() -> None:
    assert Expressions(["b$"], "SCOPE_DENY").first_in("http://a.test/\ud800b") == "SCOPE_DENY b$"


def test_without_the_engine_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(InputError, match=r"^SCOPE_DENY needs RE2: pip install "):
        Expressions(["a"], "SCOPE_DENY")

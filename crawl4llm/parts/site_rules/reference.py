"""The tables of docs/site-rules.md: each software with its marks, and each rule with its reason and source."""

from __future__ import annotations

from collections.abc import Iterator

from crawl4llm.base.software_marks import ASSETS, COOKIE, ELEMENT, GENERATOR, SOFTWARE
from crawl4llm.parts.site_rules import LISTS
from crawl4llm.parts.site_rules.table import Software
from crawl4llm.parts.site_rules.work import software_of


def site_rules_reference() -> str:
    """Return the tables in Markdown, one section a list."""
    return "\n".join(line for name in LISTS for line in _section(name)) + "\n"


def _section(name: str) -> Iterator[str]:
    yield from ("", f"### `{name}`", "", "|software|recognised by|", "|-|-|")
    software = software_of([name])
    yield from (f"|{of.title}|{_marks(of.name)}|" for of in software)
    yield from ("", "|rule and source|drops|expression|", "|-|-|-|")
    for of in software:
        yield from _rows(of)


def _marks(name: str) -> str:
    marks = zip((GENERATOR, ASSETS, ELEMENT, COOKIE), SOFTWARE[name], strict=True)
    return "; ".join(f"{kind} {_code(pattern)}" for kind, pattern in marks if pattern)


def _rows(of: Software) -> Iterator[str]:
    for rule in of.rules:
        yield f"|{_link(f'{of.name}.{rule.name}', rule.source or of.source)}|{rule.why}|{_code(rule.pattern)}|"


def _code(pattern: str) -> str:
    return "`" + pattern.replace("|", "\\|") + "`"


def _link(rule: str, source: str) -> str:
    url, _, note = source.partition(" ")
    return f"[`{rule}`]({url}){' ' * bool(note)}{note}"

"""Seeds from Common Crawl's ranks of hosts or domains, as ClueWeb12 was seeded: those of highest PageRank, without
those that a list of spam has. ClueWeb12 took pages, the first ten million, and removed the tenth most like spam.

A file has a line a host, divided by tabs: ``#harmonicc_pos #harmonicc_val #pr_pos #pr_val #host_rev``, and for domains
``#n_hosts``; names are reversed, and a host's leading ``www.`` is left out (commoncrawl.org, host- and domain-level web
graphs). It is in the order of harmonic centrality, and read no further than to the last host that is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crawl4llm.base.domain_lists import DomainList
from crawl4llm.base.domains import Domain
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import named_lines
from crawl4llm.base.terminal import harmless

_COLUMNS: Final = "#harmonicc_pos #harmonicc_val #pr_pos #pr_val #host_rev".split()  # noqa: SIM905 - as a head has them
_POSITION, _NAME = _COLUMNS.index("#pr_pos"), _COLUMNS.index("#host_rev")


def ranked_seeds(path: Path, number: int, without: Path | None) -> Iterator[str]:
    """Yield the lines of a seeds file: home pages, and comments on the names left out. Raises InputError."""
    listed = None if without is None else DomainList(without, "--without")
    if listed is not None and listed.fault is not None:
        yield f"# {listed.fault}"
    left_out = odd = 0
    for found, name in enumerate(_hosts(path, number), 1):
        try:
            host = Domain(name).name
        except InputError:
            odd += 1
        else:
            if listed is not None and listed.line_of(host) is not None:
                left_out += 1
            else:
                yield f"https://{host}/"
        if found == number:
            break
    more = f", {odd:,} are not domains" if odd else ""
    yield f"# of {number:,} hosts of highest PageRank in {path.name}, {left_out:,} are left out by the list{more}"


def _hosts(path: Path, number: int) -> Iterator[str]:
    """Yield the names whose PageRank is among the first, in the order of the file. Raises InputError."""
    is_empty = True
    for at, line in enumerate(named_lines("--ranks", path), 1):
        fields = line.rstrip("\r\n").split("\t")
        if at == 1 and line.startswith("#"):
            if [name.strip() for name in fields[: len(_COLUMNS)]] != _COLUMNS:
                raise _fault(path, at, f"has the columns {harmless(line.strip()[:80])!r}")
            continue
        is_empty = False
        if not len(_COLUMNS) <= len(fields) <= len(_COLUMNS) + 1:
            raise _fault(path, at, f"has {len(fields)} columns")
        position = fields[_POSITION].strip()
        if not (position.isdecimal() and len(position) < 16):
            raise _fault(path, at, f"has no position by PageRank in column {_POSITION + 1}")
        if int(position) <= number:
            yield ".".join(reversed(fields[_NAME].strip().split(".")))
    if is_empty:
        raise InputError(f"--ranks {path} has no lines")


def _fault(path: Path, at: int, what: str) -> InputError:
    wanted = f"it takes Common Crawl's ranks of hosts or domains: {' '.join(_COLUMNS)}"
    return InputError(f"--ranks {path}, line {at}, {what}; {wanted}")

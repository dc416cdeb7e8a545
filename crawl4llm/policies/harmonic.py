"""Harmonic centrality from a file, by which Common Crawl ranks hosts and domains for its crawls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path, named_lines
from crawl4llm.base.urls import host_of
from crawl4llm.policies._policy import EACH, BasePolicy, Candidate, Rating
from crawl4llm.policies._values import Values, finite


class Policy(BasePolicy):
    """Static, from HARMONIC_RANKS: ranks of hosts, domains or pages; names missing from the file score 0."""

    name = "harmonic"
    partitioned = EACH

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if self._options.harmonic_ranks is None:
            given = {} if self._options.corpus is None else {"CORPUS": self._options.corpus}
            make = command("corpus", "ranks", "--out", "ranks.tsv.gz", simulation=True, **given)
            raise InputError(
                f"HARMONIC_RANKS is not set; give Common Crawl's ranks of hosts or domains, or ranks of the corpus's "
                f"pages, made by {make}"
            )
        self._ranks = HarmonicRanks(given_path(self._options.harmonic_ranks))

    def identity(self) -> Mapping[str, object]:
        return {"harmonic_ranks": f"sha256:{self._ranks.digest}"}

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        return [Rating(self._ranks.value(candidate.key, candidate.url)) for candidate in candidates]


_PAGES, _HOSTS, _DOMAINS = "pages", "hosts", "domains"
_COLUMNS: Final = {2: (_PAGES, 0, 1), 5: (_HOSTS, 4, 1), 6: (_DOMAINS, 4, 1)}
"""By number of columns: the things ranked, and the places of name and value."""


class HarmonicRanks:
    """Harmonic centrality by document.

    Lines are divided by tabs, and a first line that begins with ``#`` is passed over. Two columns are a document's key
    and its value, as ``scrapy corpus ranks`` writes them. Five are Common Crawl's ranks of hosts (``#harmonicc_pos
    #harmonicc_val #pr_pos #pr_val #host_rev``), six those of registrable domains (``#n_hosts`` besides). Names are
    reversed there, and a host's leading ``www.`` is left out (commoncrawl.org, host- and domain-level web graphs). The
    first line with a name counts. A line takes 16 bytes of memory: 64 bits of a hash stand for the name.

    Raises InputError if the file cannot be read or a line is malformed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kind = ""
        self._values = Values(self._read())
        if not self._values:
            raise InputError(f"HARMONIC_RANKS {path} has no lines")
        self.digest = self._values.digest(self._kind)
        """SHA-256 of the file."""

    def _read(self) -> Iterator[tuple[str, float]]:
        """Yield names and values, and take the kind of the file from its first line."""
        for number, line in enumerate(named_lines("HARMONIC_RANKS", self._path), start=1):
            if number == 1 and line.startswith("#"):
                continue
            fields = line.rstrip("\r\n").split("\t")
            kind, name_at, value_at = _COLUMNS.get(len(fields), ("", 0, 0))
            self._kind = self._kind or kind
            if not kind or kind != self._kind:
                fault = f"has {len(fields)} columns; it takes 2 (key, value), or Common Crawl's 5 or 6"
                raise self._fault(number, fault)
            try:
                value = finite(fields[value_at])
            except ValueError:
                raise self._fault(number, f"has no number in column {value_at + 1}: {fields[value_at]!r}") from None
            yield fields[name_at], value

    def value(self, key: str, url: str) -> float:
        """Return the harmonic centrality of a document, or of its host or domain; 0 if it is not known."""
        found = map(self._values.of, self._names_of(key, url))
        return next((value for value in found if value is not None), 0.0)

    def _names_of(self, key: str, url: str) -> Iterator[str]:
        """Yield the names under which the file may have a document."""
        if self._kind == _PAGES:
            yield key
            return
        labels = host_of(url).removeprefix("www.").split(".")[::-1]
        yield ".".join(labels)
        if self._kind == _DOMAINS:  # it has no other names than those of registrable domains
            for end in range(len(labels) - 1, 0, -1):
                yield ".".join(labels[:end])

    def _fault(self, number: int, fault: str) -> InputError:
        return InputError(f"HARMONIC_RANKS {self._path}, line {number}, {fault}")

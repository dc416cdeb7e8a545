"""The policies of a contest: those of the project by name, and anybody's by file or dotted path."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path, read_input
from crawl4llm.options import Options, own_settings
from crawl4llm.policies import SCORER_PREFIX, known_policies, load_policy
from crawl4llm.tools.evaluate.shares import BOUND

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

AHEAD = "influence"
"""The policy that looks ahead, by pages crawled: it knows the influence of all documents that it discovers."""
_LARGEST = 1 << 24
"""Bytes of a policy's file."""


@dataclass(frozen=True)
class Entrant:
    """A policy of a contest."""

    name: str
    url_policy: str
    """A value of URL_POLICY."""
    digest: str | None
    """SHA-256 of its file; None for one of the project's own, which the version and the digest of the code identify."""
    looks_ahead: bool
    """True if it is a bound, which is not ranked: it looks ahead, or has read pages beforehand."""
    reads: Sequence[str]
    """The parts that it reads of pages that were not fetched: its ``corpus_parts``."""
    own: Mapping[str, Any]
    """Values of its own settings."""

    def described(self) -> dict[str, Any]:
        """Return its entry of the results."""
        return {**asdict(self), "reads": list(self.reads)}


def default_names() -> list[str]:
    """Return the project's policies that do not look ahead, and AHEAD."""
    return [name for name in known_policies() if not load_policy(name).looks_ahead] + [AHEAD]


def read_entrants(names: Sequence[str], settings: BaseSettings) -> list[Entrant]:
    """Return the policies that are named, by name, file or dotted path. Raises InputError, naming the policy."""
    found: dict[str, Entrant] = {}
    for name in names:
        entrant = _entrant(name, settings)
        if entrant.name in found:
            raise InputError(f"--policies: two are called {entrant.name}; name each once, and rename files if needed")
        found[entrant.name] = entrant
    return list(found.values())


def _entrant(given: str, settings: BaseSettings) -> Entrant:
    name = url_policy = given
    digest = None
    if given.endswith(".py"):
        path = given_path(given)
        name, digest = path.stem, _digest(path)
        url_policy = f"{_import(path)}.Policy"
    elif "." in given and not given.startswith(SCORER_PREFIX):
        name = given.removesuffix(".Policy").rpartition(".")[2]
        digest = _digest(Path(str(_module(given.rpartition(".")[0], given).__file__)))
    found = load_policy(url_policy)
    own = own_settings(settings, Options(url_policy=url_policy)) or {}
    is_bound = bool(found.looks_ahead) or url_policy == BOUND
    return Entrant(name, url_policy, digest, is_bound, tuple(found.corpus_parts), own)


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_input(path, _LARGEST)).hexdigest()
    except OSError as error:
        raise InputError(f"--policies {path} cannot be read: {error.strerror}") from None


def _import(path: Path) -> str:
    """Run a file that the user named as a module; return the module's name."""
    name = "contest_" + re.sub(r"\W", "_", path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    with _anybodys(str(path)):
        spec.loader.exec_module(module)
    return name


def _module(name: str, given: str) -> ModuleType:
    with _anybodys(given):
        return import_module(name)


@contextmanager
def _anybodys(given: str) -> Iterator[None]:
    """Raise InputError if code that is imported fails, in whatever way."""
    try:
        yield
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is not ours
        raise InputError(f"--policies {given} cannot be loaded ({type(error).__name__}: {error})") from None

"""What a site of the web is: its names, its software, the texts that fill it, and how a web server reaches it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, Protocol

from benchmarks.websoftware.texts import Text


class Link(NamedTuple):
    """A link out of a text."""

    title: str
    url: str
    """A path on the same site; of another site, the whole URL."""


class Fill(NamedTuple):
    """A text in its place."""

    text: Text
    path: str
    """Path and query of the URL that its software gives it."""
    title: str
    """As the text's, but used once on the site."""
    related: Sequence[Link]
    """Other texts of the site."""
    abroad: Sequence[Link]
    """Pages of other sites."""


@dataclass(frozen=True)
class Site:
    """A site: one installation of a software behind one web server."""

    name: str
    software: str
    """Module of :mod:`benchmarks.websoftware.software`."""
    host: str
    server: str
    """``nginx``, ``apache``, ``lighttpd`` or ``caddy``; ``front`` in the small web."""
    good: int
    """Useful texts that it is filled with."""
    low: int
    """Texts of low score beside them."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What the software's module knows of."""
    also: str = ""
    """A name that redirects to ``host``."""
    scheme: str = "https"
    """``https`` sites answer on http with a redirect."""

    @property
    def url(self) -> str:
        """Scheme and host."""
        return f"{self.scheme}://{self.host}"

    @property
    def names(self) -> list[str]:
        """All its names."""
        return [self.host, *([self.also] if self.also else [])]


@dataclass(frozen=True)
class Backend:
    """How a web server serves a site."""

    root: Path
    """Folder of files."""
    kind: str = "static"
    """``static``, ``php``, ``proxy`` or ``cgi``."""
    front: str = ""
    """Path of the script that answers for what is no file; of ``cgi`` the name of the script in ``root``."""
    socket: str = ""
    """HOST:PORT of ``proxy``."""
    pool: str = ""
    """Name of PHP's processes that serve this site alone; empty: it shares those of the others."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """PHP's settings in the pool."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Given to ``php`` and ``cgi``."""
    rewrites: Sequence[tuple[str, str]] = ()
    """Regular expressions of paths and what takes their place."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Single files at other paths."""
    aliases: Mapping[str, Path] = field(default_factory=dict)
    """Folders of files at other paths."""
    secured: Sequence[str] = ()
    """Paths for which the server wants a password."""
    commands: Sequence[Sequence[str]] = ()
    """Processes that have to run."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of these processes."""
    missing: str = ""
    """Path of the file that is sent, with status 404, for what is not there; with 200 if it begins with ``200 ``."""


class Shown(NamedTuple):
    """What a request asks a software for."""

    path: str | None
    """The canonical path of the page that holds the same main text, if it shows one."""
    kind: str
    """The kind of request; ``page`` is the canonical one."""


class Software(Protocol):
    """What a module of :mod:`benchmarks.websoftware.software` has."""

    NEEDS: Sequence[str]
    """Files of packages that have to be there."""

    def paths(self, site: Site, fills: Sequence[Text]) -> list[str]:
        """Return path and query of each text."""

    def build(self, site: Site, place: Path, fills: Sequence[Fill]) -> None:
        """Install the software in a folder, and fill it."""

    def backend(self, site: Site, place: Path) -> Backend:
        """Return how it is served."""

    def read(self, site: Site, target: str) -> Shown:
        """Tell from path and query what a request asks for."""


def as_software(module: ModuleType) -> Software:
    """Return a module as what it is."""
    return module

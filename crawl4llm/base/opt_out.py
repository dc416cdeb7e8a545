"""Domains whose owners opted out: their documents are dropped wherever they turn up."""

from __future__ import annotations

import re
from contextlib import suppress

from crawl4llm.base.domains import is_public_suffix
from crawl4llm.base.errors import InputError
from crawl4llm.base.urls import host_of

OPT_OUT = "opt_out"
"""The reason that is counted."""
_DOMAIN = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


class Domain:
    """A domain with all below it."""

    def __init__(self, given: str) -> None:
        """Raises InputError where that is none."""
        self.name = _ascii(given)
        if not _DOMAIN.fullmatch(self.name):
            raise InputError(f"{given!r} is not a domain; give it like example.com")

    def holds(self, url: str) -> bool:
        """Whether a URL is of this domain."""
        host = _ascii(host_of(url))
        return host == self.name or host.endswith(f".{self.name}")


def domain_to_purge(given: str, *, whole_suffix: bool) -> Domain:
    """The domain that a user wants to have removed. Raises InputError: it is none, or a public suffix.

    ``whole_suffix``: a public suffix is meant.
    """
    domain = Domain(given)
    if is_public_suffix(domain.name) and not whole_suffix:
        raise InputError(
            f"{domain.name} is a public suffix, below which are the sites of many owners; give the domain of one, or, "
            "to remove them all, --whole-suffix too"
        )
    return domain


def _ascii(host: str) -> str:
    """A host in the form that URLs are compared in: lower case, ASCII (RFC 3490), no dot at the end."""
    if not host.isascii():
        with suppress(UnicodeError):
            host = host.encode("idna").decode()
    return host.lower().removesuffix(".")

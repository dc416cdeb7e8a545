"""Registrable domains of URLs: the owner of a page."""

from __future__ import annotations

import re
import socket
from collections.abc import Collection
from functools import lru_cache
from importlib.metadata import version
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.urls import PLAIN_HOST, host_named, host_of

if TYPE_CHECKING:
    from tldextract import TLDExtract

OWNER_RULES: Final = f"3, tldextract {version('tldextract')}"
"""Version of the rules of :func:`owner_of`; under another version some URLs may have other owners."""


@lru_cache(maxsize=1)
def _suffixes() -> TLDExtract:
    """Return the Public Suffix List that comes with tldextract, with its private part: the sites under ``github.io``
    have separate owners. No newer list is fetched, so the answer is the same anywhere."""
    from tldextract import TLDExtract  # takes as long as all of this project, and many crawls ask for no owner

    return TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)


@lru_cache(maxsize=65536)
def domain_of(host: str) -> str:
    """Return the registrable domain of a host: its public suffix (one label, if not listed) and one label more.

    See publicsuffix.org, "Algorithm". A public suffix is returned unchanged, and an address in its usual form.
    """
    parts = _suffixes()(host)
    if parts.suffix:
        return parts.top_domain_under_public_suffix or host
    return _address(host) or (host if ":" in host else ".".join(host.split(".")[-2:]))


def _address(host: str) -> str | None:
    """Return the usual form of an address (RFC 5952 for IPv6, IPv4 for an IPv4-mapped one); None for a name.

    ``2130706433``, ``0x7f.1`` and ``0177.0.0.1`` are forms of 127.0.0.1 (inet_addr of POSIX; URL Standard, 3.5).
    """
    try:
        if ":" not in host:
            return socket.inet_ntoa(socket.inet_aton(host))
        address = IPv6Address(host)
    except (OSError, ValueError):
        return None
    return str(address.ipv4_mapped or address)


def is_public_suffix(domain: str) -> bool:
    """Return whether sites directly below a domain have separate owners, as below ``com``, or by the rule
    ``*.kawasaki.jp``."""
    return len(domain_of(f"any.{domain}")) > len(domain)


def may_be_public_suffix(domain: str) -> bool:
    """Return False if a domain is surely no public suffix; True needs :func:`is_public_suffix`, which takes ten times
    as long."""
    rules, (_, dot, parent) = _rules(), domain.partition(".")
    return not dot or not rules.isdisjoint((domain, f"*.{domain}", f"*.{parent}")) or "xn--" in domain


@lru_cache(maxsize=1)
def _rules() -> frozenset[str]:
    """Return the rules of the Public Suffix List, as written there."""
    return frozenset(_suffixes().tlds)


def domain_of_url(url: str) -> str:
    """Return the registrable domain of a URL's host."""
    return domain_of(host_of(url))


def owner_of(url: str) -> str:
    """Return the owner of a URL: the registrable domain of its host, in ASCII. Each owner gets one request at a time.

    Empty if the URL has no host, or one longer than names may be (RFC 1035, 2.3.4).
    """
    host = ascii_host(url)
    return "" if len(host) > _LONGEST_NAME or _TOO_LONG.search(host) else domain_of(host)


def ascii_host(url: str) -> str:
    """Return the host of a URL in the form in which domains are compared; empty if it has none."""
    plain = PLAIN_HOST.match(url)
    return plain[1] if plain else host_of(url).removesuffix(".")


_LONGEST_NAME = 253
"""Most characters of a name: 255 octets less the lengths of its first label and of the root."""
_TOO_LONG = re.compile(r"[^.]{64}")
"""A label longer than the 63 octets that are allowed."""
_DOMAIN = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


class Domain:
    """A domain with its subdomains."""

    def __init__(self, given: str) -> None:
        """Raise InputError if ``given`` is not a domain."""
        self.name = host_named(given)
        if not _DOMAIN.fullmatch(self.name):
            raise InputError(f"{given!r} is not a domain; give it like example.com")

    def holds(self, url: str) -> bool:
        """Return whether a URL belongs to this domain."""
        host = ascii_host(url)
        return host == self.name or host.endswith(f".{self.name}")


def is_below(url: str, domains: Collection[str]) -> bool:
    """Return whether a URL belongs to one of ``domains``, which are names as in :class:`Domain`, or to a subdomain."""
    host = ascii_host(url) if domains else ""
    while host and host not in domains:
        host = host.partition(".")[2]
    return bool(host)


def domain_to_purge(given: str, *, whole_suffix: bool) -> Domain:
    """Return the domain to purge. Raises InputError if it is not a domain, or is a public suffix without
    ``whole_suffix``."""
    domain = Domain(given)
    if is_public_suffix(domain.name) and not whole_suffix:
        raise InputError(
            f"{domain.name} is a public suffix, below which are the sites of many owners; give the domain of one, or, "
            "to remove them all, --whole-suffix too"
        )
    return domain

"""Registrable domains of URLs: who owns a page."""

from __future__ import annotations

from functools import lru_cache

from tldextract import TLDExtract

from crawl4llm.base.urls import host_of

_suffixes = TLDExtract(cache_dir=None, suffix_list_urls=(), include_psl_private_domains=True)
"""The Public Suffix List that comes with tldextract: no other is ever fetched, so that the answer is the same anywhere.
With its private part: the sites under ``github.io`` have separate owners."""


@lru_cache(maxsize=65536)
def domain_of(host: str) -> str:
    """The registrable domain of a host: one label more than its public suffix; a suffix that is not listed has one
    label (publicsuffix.org, "Algorithm"). Of an address, or a public suffix, it is that itself."""
    parts = _suffixes(host)
    if parts.suffix:
        return parts.top_domain_under_public_suffix or host
    return host if parts.ipv4 or ":" in host else ".".join(host.split(".")[-2:])


def is_public_suffix(domain: str) -> bool:
    """Whether the sites right below a domain have separate owners: it is a public suffix, or only parts of it are none.

    So is ``kawasaki.jp``, for the list has ``*.kawasaki.jp``.
    """
    return len(domain_of(f"any.{domain}")) > len(domain)


def domain_of_url(url: str) -> str:
    """The registrable domain of a URL's host."""
    return domain_of(host_of(url))

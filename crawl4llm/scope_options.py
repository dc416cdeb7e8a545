"""The settings that say what a crawl follows; the other fields of the table are in :mod:`crawl4llm.options`."""

from __future__ import annotations

from dataclasses import dataclass

from crawl4llm.option_checks import fixed, flag, one_of, option


@dataclass(frozen=True, kw_only=True)
class ScopeOptions:
    """The checked values of settings for links, owners and URLs that are left alone."""

    crawl_scope: str = fixed(
        "web",
        one_of("web", "domain"),
        "Links that are followed: all, or (`domain`) those within the registrable domain of the page they are on, so "
        "that no seed's crawl leaves its domain.",
    )
    opt_out_fetch: bool = option(
        False,
        flag,
        "Live crawls: whether pages are fetched and archived that may not be trained on; they are marked and never "
        "exported ([opt-outs.md](opt-outs.md)).",
    )

"""Whether a statistics key of a crawl is in the reference."""

from __future__ import annotations

import re

from crawl4llm.base.reasons import PURPOSES, STOPPED, TABLES, is_reason
from crawl4llm.base.stats import KEYS


def is_documented(key: str) -> bool:
    """Return whether a statistics key, without the prefix, is one of KEYS, and has a known reason, if any."""
    outcome, _, reason = key.partition("/")
    if outcome == "given_up":
        return is_reason("failed", reason)
    if outcome == "requests":
        return reason in PURPOSES
    if outcome == "unsent":
        return reason == STOPPED or any(is_reason(ended, reason) for ended in ("failed", "dropped"))
    if outcome in TABLES:
        return is_reason(outcome, reason)
    return key in KEYS or any(_form(known).fullmatch(key) for known in KEYS if "<" in known)


def _form(key: str) -> re.Pattern[str]:
    """Return the form of keys with names between angle brackets."""
    return re.compile(re.sub("<[a-z]+>", "[^/]+", key))

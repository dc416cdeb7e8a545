"""``/.well-known/tdmrep.json`` of the TDM Reservation Protocol: paths of a site, and whether rights are reserved.

The first rule that matches a path counts. A file that is too long, not a JSON array, or nested too deeply is ignored.
So is a rule without a location, or with another reservation than 0 or 1.
"""

from __future__ import annotations

from typing import Any, Final

from crawl4llm.base.input_files import json_or_none
from crawl4llm.optouts.patterns import Pattern, path_of
from crawl4llm.optouts.said import Said
from crawl4llm.optouts.table import TDM_POLICY, TDM_RESERVATION, TDMREP

PATH: Final = "/.well-known/tdmrep.json"
LIMIT: Final = 500 * 1024
"""Most bytes of a file; a longer one is ignored."""

_RESERVED: Final = {"1": True, "0": False, "True": True, "False": False}
_BYTES_OF_RULES, _BYTES_A_RULE = 500, 700
"""Memory in bytes of the rules of a file, and of each rule."""
_LONGEST: Final = 2048
"""Most characters of a location or a policy's URL."""


class TdmRules:
    """The rules of a file."""

    def __init__(self, body: bytes) -> None:
        """Any bytes are accepted; they may give no rules."""
        self._rules = [rule for one in _entries(body) if (rule := _rule(one))]
        self.size = sum(_BYTES_A_RULE + 3 * len(pattern.text) + len(policy) for pattern, _, policy in self._rules)
        self.size += _BYTES_OF_RULES if self._rules else 0
        """Memory in bytes, roughly, and rather too much."""

    def of(self, url: str) -> list[Said]:
        """Return the signals that apply to a URL of the site."""
        if not self._rules:
            return []
        path = path_of(url)
        for pattern, is_reserved, policy in self._rules:
            if pattern.matches(path):
                if not is_reserved:
                    return []
                said = [Said(TDM_RESERVATION, "1", TDMREP, pattern.text)]
                return [*said, Said(TDM_POLICY, policy, TDMREP, pattern.text)] if policy else said
        return []


def _entries(body: bytes) -> list[Any]:
    if not body or len(body) > LIMIT:
        return []
    found = json_or_none(body.removeprefix(b"\xef\xbb\xbf"))
    return found if isinstance(found, list) else []


def _rule(entry: Any) -> tuple[Pattern, bool, str] | None:
    if not isinstance(entry, dict):
        return None
    location, policy = entry.get("location"), entry.get("tdm-policy")
    is_reserved = _RESERVED.get(str(entry.get("tdm-reservation")))
    if is_reserved is None or not isinstance(location, str) or not 0 < len(location) <= _LONGEST:
        return None
    if not location.startswith(("/", "*")):
        location = f"/{location}"
    return Pattern(location), is_reserved, policy if isinstance(policy, str) and len(policy) <= _LONGEST else ""


NOTHING_RESERVED: Final = TdmRules(b"")

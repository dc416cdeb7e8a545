"""Which of the project's settings a crawl does not heed, because they are for crawls of another kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy.settings import SETTINGS_PRIORITIES

from crawl4llm.base.settings import is_dotted
from crawl4llm.live_options import LiveOptions

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.options import Options


class _Kind(NamedTuple):
    """The kind of a crawl, by its settings."""

    options: Options
    profile: str
    has_jobdir: bool


class _Group(NamedTuple):
    """Settings that hold in some crawls only."""

    names: tuple[str, ...]
    hold_in: str
    hold: Callable[[_Kind], bool]


def _of_policy(policy: str, *names: str) -> _Group:
    """Return the settings of one policy, which a policy of somebody else may take over."""

    def hold(kind: _Kind) -> bool:
        return kind.options.url_policy == policy or is_dotted(kind.options.url_policy)

    return _Group(names, f"URL_POLICY={policy}", hold)


_LIVE_ONLY: Final = (*(entry.name.upper() for entry in fields(LiveOptions)), "OPT_OUT_FETCH", "WARC_REVISITS")
_SIMULATION_ONLY: Final = (
    *("CORPUS_CANONICAL_LINKS", "CLUEWEB22_TARGET_PREFIX"),
    *("SIMULATION_TEXT", "SIMULATION_OWNER_DELAY", "SIMULATION_CAPACITY", "SCORE_CACHE"),
    "CRAWL_SEEDS",
)
_GROUPS: Final = (
    _Group(_LIVE_ONLY, "live crawls", lambda kind: kind.profile == "live"),
    _Group(_SIMULATION_ONLY, "simulations", lambda kind: kind.profile == "simulation"),
    _Group(("SIMULATION_CAPACITY",), "SIMULATION_OWNER_DELAY", lambda kind: bool(kind.options.simulation_owner_delay)),
    _Group(("CRAWL_PARTITIONS",), "crawls with STORAGE", lambda kind: kind.options.storage is not None),
    _Group(("CLUSTER_LEASE",), "crawls with CLUSTER", lambda kind: kind.options.cluster is not None),
    _Group(
        ("VISITED_CACHE", "COMMIT_INTERVAL_PAGES", "COMMIT_INTERVAL_SECONDS", "COMMIT_FSYNC"),
        "crawls with JOBDIR or STORAGE",
        lambda kind: kind.has_jobdir or kind.options.storage is not None,
    ),
    _of_policy("harmonic", "HARMONIC_RANKS"),
    _of_policy("ensemble", "ENSEMBLE_WEIGHTS"),
)


def unheeded(settings: BaseSettings, options: Options, profile: str) -> Iterator[str]:
    """Yield a line for each setting on the command line that a crawl of these settings does not heed.

    Settings in a settings file may be for other crawls, and are passed over.
    """
    kind = _Kind(options, profile, bool(settings.get("JOBDIR")))
    told: set[str] = set()
    for group in _GROUPS:
        for name in () if group.hold(kind) else group.names:
            given = (settings.getpriority(name) or 0) >= SETTINGS_PRIORITIES["cmdline"]
            if given and name not in told and settings.get(name) not in (None, ""):
                told.add(name)
                yield f"{name} does not hold here: it is for {group.hold_in}"

"""Settings of Scrapy and this project: the kinds of crawl in which each has an effect, and checks before Scrapy fails
on one.

Commands for a past run restore its settings.
"""

from __future__ import annotations

import codecs
import difflib
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings
from scrapy.spidermiddlewares.referer import RefererMiddleware

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.received import refuse_code
from crawl4llm.base.run_folder import SETTINGS
from crawl4llm.base.settings import Check, flag, is_dotted, one_of, real_number, whole
from crawl4llm.engine.logs import JSON
from crawl4llm.live_options import LiveOptions
from crawl4llm.options import Options, setting_name

logger = logging.getLogger(__name__)

YES, NO, REFUSED = "yes", "no", "refused"


class Holds(NamedTuple):
    """Settings, and whether they have an effect: YES, NO or REFUSED."""

    names: str
    simulation: str
    live: str
    addon: str
    remark: str = ""


TABLE: Final = (
    Holds("DEPTH_LIMIT", YES, YES, YES, "deeper links are counted as `links/too_deep`"),
    Holds("DEPTH_PRIORITY DEPTH_STATS_VERBOSE", NO, NO, YES, "the policy gives the order"),
    Holds("URLLENGTH_LIMIT", YES, YES, YES, "longer ones: `links/url_too_long`; no limit in the simulation profile"),
    Holds(
        "USER_AGENT DEFAULT_REQUEST_HEADERS", NO, YES, YES, "live: must [say who runs the crawl](fetching.md#identity)"
    ),
    Holds("COOKIES_ENABLED COOKIES_DEBUG", NO, YES, YES, "off in the live profile"),
    Holds("REFERER_ENABLED REFERRER_POLICY", NO, YES, YES, "live: for redirects; links have no Referer"),
    Holds("HTTPAUTH_USER HTTPAUTH_PASS HTTPAUTH_DOMAIN", NO, YES, YES),
    Holds("HTTPPROXY_ENABLED HTTPPROXY_AUTH_ENCODING", NO, YES, YES, "off in the live profile"),
    Holds("ROBOTSTXT_OBEY ROBOTSTXT_USER_AGENT", NO, YES, YES, "on in the live profile"),
    Holds("ROBOTSTXT_PARSER", NO, NO, YES, "live, robots.txt is read [by RFC 9309](fetching.md#robotstxt)"),
    Holds("CONCURRENT_REQUESTS", YES, YES, YES, "0 is refused, except by the add-on"),
    Holds("CONCURRENT_REQUESTS_PER_DOMAIN", NO, YES, YES, "likewise"),
    Holds("DOWNLOAD_DELAY DOWNLOAD_DELAY_JITTER RANDOMIZE_DOWNLOAD_DELAY DOWNLOAD_SLOTS", NO, YES, YES),
    Holds("AUTOTHROTTLE_ENABLED AUTOTHROTTLE_START_DELAY AUTOTHROTTLE_MAX_DELAY", NO, YES, YES),
    Holds("AUTOTHROTTLE_TARGET_CONCURRENCY AUTOTHROTTLE_DEBUG", NO, YES, YES),
    Holds("DOWNLOAD_TIMEOUT DOWNLOAD_FAIL_ON_DATALOSS DOWNLOAD_WARNSIZE", NO, YES, YES),
    Holds(
        *("DOWNLOAD_MAXSIZE", YES, YES, YES),
        "larger pages are dropped as `too_large`; live, they are [cut](fetching.md#answers)",
    ),
    Holds("DOWNLOADER DOWNLOADER_MIDDLEWARES", YES, YES, YES, "in addition to those of the profile"),
    Holds("DOWNLOAD_HANDLERS DOWNLOADER_STATS", NO, YES, YES),
    Holds("DOWNLOAD_BIND_ADDRESS", NO, YES, YES),
    Holds("DOWNLOAD_VERIFY_CERTIFICATES", NO, YES, YES, "on in the live profile"),
    Holds("DOWNLOAD_TLS_MIN_VERSION DOWNLOAD_TLS_MAX_VERSION", NO, YES, YES),
    Holds("DOWNLOADER_CLIENTCONTEXTFACTORY DOWNLOADER_CLIENT_TLS_CIPHERS", NO, YES, YES),
    Holds("DOWNLOADER_CLIENT_TLS_METHOD DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING", NO, YES, YES),
    Holds("DNSCACHE_ENABLED DNSCACHE_SIZE DNS_TIMEOUT REACTOR_THREADPOOL_MAXSIZE", NO, YES, YES),
    Holds("TWISTED_DNS_RESOLVER", NO, NO, YES, "live: [one that refuses addresses](security.md#network-safety)"),
    Holds("COMPRESSION_ENABLED", NO, YES, YES),
    Holds("RETRY_ENABLED RETRY_TIMES RETRY_HTTP_CODES RETRY_EXCEPTIONS", NO, YES, YES, "retries stay in one lease"),
    Holds("REDIRECT_ENABLED REDIRECT_MAX_TIMES", NO, YES, YES),
    Holds("METAREFRESH_ENABLED", NO, REFUSED, YES, "live, a refresh in HTML is a link"),
    Holds("METAREFRESH_MAXDELAY METAREFRESH_IGNORE_TAGS", NO, NO, YES, "likewise"),
    Holds("RETRY_PRIORITY_ADJUST REDIRECT_PRIORITY_ADJUST", NO, NO, YES),
    Holds("HTTPERROR_ALLOW_ALL HTTPERROR_ALLOWED_CODES", NO, NO, YES, "a page has status 200"),
    Holds("HTTPCACHE_ENABLED", NO, REFUSED, YES, "a live archive holds what went over the wire"),
    Holds("CLOSESPIDER_TIMEOUT CLOSESPIDER_PAGECOUNT", NO, YES, YES, "live: [an end](operating.md#ends-and-stalls)"),
    Holds("CLOSESPIDER_ERRORCOUNT", NO, YES, YES, "likewise, with exit status 1"),
    Holds("CLOSESPIDER_TIMEOUT_NO_ITEM CLOSESPIDER_PAGECOUNT_NO_ITEM", NO, YES, YES, "live: a page is no item"),
    Holds("CLOSESPIDER_ITEMCOUNT", NO, NO, YES, "likewise"),
    Holds("DUPEFILTER_CLASS DUPEFILTER_DEBUG REQUEST_FINGERPRINTER_CLASS", NO, NO, YES, "the visited set does it"),
    Holds("SCHEDULER", REFUSED, REFUSED, YES, "the scheduler gives the order of pages"),
    Holds("SCHEDULER_PRIORITY_QUEUE SCHEDULER_MEMORY_QUEUE SCHEDULER_DISK_QUEUE SCHEDULER_DEBUG", NO, NO, NO),
    Holds("TWISTED_REACTOR", REFUSED, REFUSED, REFUSED, "all crawls need asyncio, the default"),
    Holds("JOBDIR", YES, YES, REFUSED, "[pause and resume](pause-and-resume.md)"),
)
"""The settings that Scrapy documents for requests, downloads and depth."""

_REAL: Final = {"DOWNLOAD_DELAY", "DOWNLOAD_TIMEOUT", "DNS_TIMEOUT", "CLOSESPIDER_TIMEOUT"}
"""Settings with whole numbers as defaults that also allow fractions."""
_AT_LEAST: Final = {"CONCURRENT_REQUESTS": 1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
"""Least values, below which the crawl would wait for ever; other numbers may be 0 or more, except priority
adjustments."""
_PROFILE: Final = {
    *("crawl4llm.engine.scheduler.InfluenceScheduler", default_settings.TWISTED_REACTOR),
    *(False, "0", "False", "false"),
}
"""Values that are never refused."""
_LOG_LEVELS: Final = ("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG")


def _is_commanded(settings: BaseSettings, name: str) -> bool:
    """Return whether a setting was given on the command line."""
    return (settings.getpriority(name) or 0) >= SETTINGS_PRIORITIES["cmdline"]


def asks_for_log(settings: BaseSettings) -> bool:
    """Return whether the command line asks for LOG_LEVEL INFO or DEBUG, or the log goes to a file; then Scrapy's start
    messages belong there."""
    asked = _is_commanded(settings, "LOG_LEVEL") and settings["LOG_LEVEL"] in {"INFO", "DEBUG", 20, 10}
    return bool(settings.get("LOG_FILE")) or asked


def check_values(settings: BaseSettings) -> None:
    """Raise InputError for a value of a Scrapy setting that would end in a traceback, or in an endless wait."""
    for name, default in vars(default_settings).items():
        if not settings.getpriority(name) or (value := settings.get(name)) == default:
            continue
        try:
            if name == "LOG_LEVEL":
                value = value if isinstance(value, int) else one_of(*_LOG_LEVELS)(value)
            elif name == "LOG_ENCODING":
                codecs.lookup(value)
            elif name == "LOG_FORMAT" and value != JSON:
                logging.Formatter(value)
            elif check := _check_of(name, default):
                check(value)
            elif _names_a_class(name, default):
                _check_module(value)
            elif name == "REFERRER_POLICY" and "." not in str(value):
                RefererMiddleware(settings)
            elif isinstance(default, list) and default and isinstance(default[0], int):
                [int(one) for one in settings.getlist(name)]
        except (ImportError, LookupError, RuntimeError, TypeError, ValueError) as error:
            words = f"cannot be loaded ({error})" if _names_a_class(name, default) else _in_words(error)
            raise InputError(f"{name} = {value!r} {words}") from None
    path = settings.get("LOG_FILE")
    with as_input_error(f"LOG_FILE {path} cannot be written"):
        if path:
            Path(path).open("ab").close()


def _check_of(name: str, default: Any) -> Check | None:
    """Return the check of a number or a truth value; None for another setting."""
    if isinstance(default, bool) or name.endswith("_ENABLED"):
        return flag
    if isinstance(default, float) or name in _REAL:
        return real_number(0)
    if isinstance(default, int) and not name.endswith(("_PRIORITY", "_ADJUST", "_INDENT")):
        return whole(_AT_LEAST.get(name, 0))
    return int if isinstance(default, int) else None


def _names_a_class(name: str, default: Any) -> bool:
    return isinstance(default, str) and default.startswith("scrapy.") and name != "REFERRER_POLICY"  # takes words too


def _check_module(path: Any) -> None:
    """Raise ImportError if there is no such module; it is not imported, because it may install a reactor."""
    if isinstance(path, str) and ("." not in path or find_spec(path.rpartition(".")[0]) is None):
        raise ImportError("there is no such module")


def _in_words(error: Exception) -> str:
    return "must be a whole number, or a list of them" if "int()" in str(error) else str(error)


def check_mode(settings: BaseSettings, profile: str) -> None:
    """Warn of settings on the command line that have no effect in this kind of crawl.

    Raises InputError for those that would break it.
    """
    for row in TABLE:
        holds = getattr(row, profile)
        for name in row.names.split():
            value = settings.get(name)
            if holds == REFUSED and value not in _PROFILE:
                raise InputError(f"{name} = {value!r} cannot be used here: {row.remark}; leave it out")
            if holds == NO and _is_commanded(settings, name):
                logger.warning("%s has no effect in a %s crawl", name, "live" if profile == "live" else "simulated")


def misspelt(settings: BaseSettings, own: Collection[str] = ()) -> Mapping[str, list[str]]:
    """Return settings that are misspelt names of this project's settings or of ``own``: as given, with the probable
    names.

    Lower case, of Scrapy's settings too, and missing first words are slips. A single word counts only on the command
    line, because in a settings file it may be a variable.
    """
    names = [*map(setting_name, fields(Options)), "JOBDIR", *own]  # a crawl without JOBDIR cannot be resumed
    forms: dict[str, list[str]] = {}
    for form in [name.split("_", dropped)[-1] for name in names for dropped in range(name.count("_") + 1)]:
        forms[form] = [name for name in names if name == form] or [name for name in names if name.endswith(f"_{form}")]
    found = {}
    for name in settings:
        meant = name.upper().replace("-", "_")
        if name in names or name in vars(default_settings):
            continue
        if meant in vars(default_settings):
            found[name] = [meant]
            continue
        close = difflib.get_close_matches(meant, forms, n=1, cutoff=0.9)
        if close and ("_" in close[0] or close[0] in names or _is_commanded(settings, name)):
            found[name] = forms[close[0]]
    return found


_LIVE_ONLY: Final = (*(entry.name.upper() for entry in fields(LiveOptions)), "WARC_REVISITS")
_SIMULATION_ONLY: Final = (
    *("CORPUS_CANONICAL_LINKS", "CLUEWEB22_TARGET_PREFIX"),
    *("SIMULATION_TEXT", "SIMULATION_OWNER_DELAY", "SIMULATION_CAPACITY", "SCORE_CACHE"),
    "CRAWL_SEEDS",
)
_LASTING_ONLY: Final = ("VISITED_CACHE", "COMMIT_INTERVAL_PAGES", "COMMIT_INTERVAL_SECONDS", "COMMIT_FSYNC")


def groups(options: Options, profile: str, *, has_jobdir: bool) -> Sequence[tuple[Sequence[str], str, bool]]:
    """Return settings that have an effect in some crawls only, with the name of these crawls, and whether this is
    one."""
    policy = options.url_policy
    is_own = is_dotted(policy)  # a policy of somebody else may take over the settings of ours
    return (
        (_LIVE_ONLY, "live crawls", profile == "live"),
        (_SIMULATION_ONLY, "simulations", profile == "simulation"),
        (["SIMULATION_CAPACITY"], "SIMULATION_OWNER_DELAY", options.simulation_owner_delay > 0),
        (["CRAWL_PARTITIONS"], "crawls with STORAGE", options.storage is not None),
        (["CLUSTER_LEASE"], "crawls with CLUSTER", options.cluster is not None),
        (_LASTING_ONLY, "crawls with JOBDIR or STORAGE", has_jobdir or options.storage is not None),
        (["HARMONIC_RANKS"], "URL_POLICY=harmonic", is_own or policy == "harmonic"),
        (["BOUND_SCORES"], "URL_POLICY=bound", is_own or policy == "bound"),
        (["ENSEMBLE_WEIGHTS"], "URL_POLICY=ensemble", is_own or policy == "ensemble"),
    )


def unheeded(settings: BaseSettings, options: Options, profile: str) -> Iterator[str]:
    """Yield a line for each setting on the command line that has no effect in this crawl.

    Settings in a settings file may be for other crawls, and are ignored.
    """
    told: set[str] = set()
    for names, hold_in, holds in groups(options, profile, has_jobdir=bool(settings.get("JOBDIR"))):
        for name in () if holds else names:
            if _is_commanded(settings, name) and name not in told and settings.get(name) not in (None, ""):
                told.add(name)
                yield f"{name} has no effect here: it is for {hold_in}"


_OF_THIS_PROCESS = {
    *("OUTPUT_DIR", "DRY_RUN", "CRAWL_SEED", "SCORING_WORKERS", "SCORE_CACHE", "PROGRESS_BAR"),
    *("EXECUTOR", "CRAWL_PARTS"),
}
"""Settings that change neither pages nor scores."""


def take_over(settings: BaseSettings, facts: Mapping[str, Any], run: object) -> None:
    """Set the settings in a run's ``settings.json``, except those given on the command line; ``run`` names the run.

    A run's folder may come from anybody, so nothing that it names is imported. A dotted path counts only if the command
    line or the user's own settings have it too. Raises InputError that says so.
    """
    values = facts.get("settings", {})
    if not isinstance(values, dict):
        raise InputError(f"{run}: {SETTINGS} is damaged: its settings are no JSON object")
    for option in fields(Options):
        name = setting_name(option)
        value = values.get(name)
        overruled = (settings.getpriority(name) or 0) > SETTINGS_PRIORITIES["spider"]  # on the command line
        if value is None or name in _OF_THIS_PROCESS or overruled:
            continue
        imports = option.metadata["imports"]
        if imports is not None and imports(value):
            refuse_code(run, SETTINGS, name, value, settings.get(name))
        settings.set(name, value, priority="spider")


def reference() -> str:
    """Return the table as Markdown."""
    lines = ["|Scrapy's setting|simulation|live|add-on||", "|-|-|-|-|-|"]
    for row in TABLE:
        names = ", ".join(f"`{name}`" for name in row.names.split())
        lines.append(f"|{names}|{row.simulation}|{row.live}|{row.addon}|{row.remark}|")
    return "\n".join(lines) + "\n"

"""The project's settings: one table with name, default, check and meaning.

Every setting of crawl4llm is a field of :class:`Options`, which unites a class for each group. Policies, scoring and
parts declare their own (:mod:`crawl4llm.policies`, :mod:`crawl4llm.scoring.scorer`, :mod:`crawl4llm.parts`). Those of
live crawls are in :mod:`crawl4llm.live_options`, those of cluster crawls in :mod:`crawl4llm.cluster_options`, all
others here. The field ``crawl_max_pages`` is the Scrapy setting ``CRAWL_MAX_PAGES``. The settings reference
(docs/settings.md) is generated from this table; a test compares them.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base import settings as check
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.jobs import Executor, Here
from crawl4llm.base.settings import Check, fixed, option
from crawl4llm.base.slurm import Slurm
from crawl4llm.cluster_options import ClusterOptions
from crawl4llm.live_options import LiveOptions
from crawl4llm.parts import Settings as PartsOptions, load_part
from crawl4llm.policies import SCORER_PREFIX, PolicyOptions, load_policy
from crawl4llm.scoring import ScoringOptions, follow_rules, load_scorer_class, parse_weights

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_FILTER_BYTES = 268
"""Bytes for each visited document in memory; by default as many as filters of 109 million documents take."""

DEMO = "demo"
"""The value of CORPUS for the demo web."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class CrawlOptions(PolicyOptions):
    """The checked values of settings for pages, their order, and the output."""

    crawl_max_pages: int = option(1000, check.whole(1))
    """N: the number of crawled pages at which the crawl ends."""
    crawl_batch_size: int = fixed(100, check.whole(0))
    """n: pages crawled in an iteration. 0: continuous order, the best document next."""
    crawl_seed: int = fixed(0, check.whole(0))
    """Seed of all random numbers."""
    crawl_seeds: int = option(100, check.whole(1))
    """Random documents of the corpus to start from if no seeds are given."""
    crawl_patience: float = option(0.0, check.share)
    """With owners that wait: documents with a score below this quantile (0 to 1) of the owners' best documents are not
    fetched yet ([Owners that wait](simulation-and-live.md#owners-that-wait))."""
    frontier_max_urls: int = fixed(0, check.whole(0))
    """Most documents in the frontier; the worst ones above that are dropped as `frontier_full`. 0: any number."""
    frontier_max_urls_per_host: int = fixed(0, check.whole(0))
    """Most documents of a host in the frontier; others are dropped as `host_full`. Makes a frontier on disk several
    times slower. 0: any number."""
    output_dir: str | None = option(None, check.optional_text)
    """Folder of the crawl's output; by default a new numbered folder under `crawls/`. It may hold other files, but none
    with a name that crawls use. A start that is refused leaves only `errors.log` there."""
    dry_run: bool = option(False, check.flag)
    """Check all settings, crawl 200 pages into a temporary folder, and estimate time and space of the crawl."""
    progress_bar: str = option("auto", check.one_of("auto", "on", "off"))
    """Progress bar instead of log lines; `auto`: on a terminal only."""
    live_logging: tuple[str, ...] = option((), check.some_of("tensorboard", "wandb"))
    """Services that get figures during the crawl: `tensorboard`, `wandb`, or both, divided by a comma; each needs the
    extra of its name."""
    metrics_port: str | None = option(None, check.address)
    """Port on this machine, or address and port, at which figures are served to Prometheus during the crawl: `9410`,
    `0.0.0.0:9410` ([monitoring.md](monitoring.md)); needs the extra `metrics`."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class CorpusOptions:
    """The checked values of settings for the corpus of a simulation."""

    corpus: str | None = option(None, check.optional_text, imports=check.is_corpus_class)
    """The corpus of a simulated crawl: `demo` (the simulation profile's default), the root of a ClueWeb22 tree, WARC
    files, or the dotted path of a class ([of your own](extending.md)). WARC files are given as a file, a folder, a glob
    pattern, or a text file with a list of paths."""
    corpus_canonical_links: bool = fixed(False, check.flag)
    """WARC files: whether a page is also found under the URL that its canonical link names."""
    clueweb22_target_prefix: str = fixed("", str)
    """Only documents whose id starts with this are targets of links; the paper's crawl has `clueweb22-en0`. Empty: all
    of the tree."""
    simulation_text: str = fixed("corpus", check.one_of("corpus", "extracted"))
    """The text that is scored: the clean text of the `corpus`, or text `extracted` from its HTML."""
    simulation_owner_delay: float = fixed(0.0, check.real_number(0, below=1e9))
    """Virtual seconds that [owners wait](simulation-and-live.md#owners-that-wait) after a fetch."""
    simulation_capacity: float = fixed(10.0, check.real_number(0))
    """With `SIMULATION_OWNER_DELAY`: most fetches in a virtual second. 0: any number."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ArchiveOptions:
    """The checked values of settings for the archive."""

    warc_enabled: bool = fixed(True, check.flag)
    """Archive crawled pages."""
    warc_max_bytes: int = fixed(1_000_000_000, check.whole(1))
    """Compressed size at which a WARC file is closed."""
    warc_prefix: str = fixed("crawl4llm", check.file_name_part)
    """First part of the names of WARC files."""
    warc_max_age: float = option(0.0, check.real_number(0))
    """Live crawls: seconds after which a WARC file is closed, at the next commit. 0: any age. A simulation has no clock
    and ignores it."""
    warc_compression: str = fixed("gzip", check.one_of("gzip", "zstd"))
    """Compression of each record: `gzip`, which all tools read, or `zstd` (`.warc.zst`), which is smaller but which
    fewer tools read."""
    warc_text: bool = fixed(False, check.flag)
    """Archive also the main text of crawled pages, which is scored, in separate files."""
    warc_revisits: int = fixed(1_000_000, check.whole(0))
    """Live crawls: number of last payloads that are remembered, so that a repeated one is stored as a `revisit` record
    only; about 250 bytes of memory each. 0: none."""
    warc_operator: str | None = option(None, check.optional_text)
    """Operator of the crawl, for the `warcinfo` record."""
    archive_credentials: bool = fixed(False, check.flag)
    """Keep `Cookie` and `Authorization` in archived requests as they were sent; only their owner may then read the WARC
    files."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ExpertOptions:
    """The checked values of settings that few crawls need."""

    executor: Mapping[str, Any] | None = option(None, check.settings_object)
    """`--tasks` divides the work of commands into tasks ([offline-jobs.md](offline-jobs.md)). Without this setting they
    run in processes of this machine. With it they run in jobs that datatrove submits to Slurm: options of its
    SlurmPipelineExecutor, as a JSON object, such as `{"partition": "cpu", "time": "8:00:00"}`; needs the extra
    `offline`."""
    crawl_concurrent_leases: int = option(0, check.whole(0))
    """Continuous order: most documents taken from the frontier and not yet done; 0: `CONCURRENT_REQUESTS`. With 1 the
    order is strictly best-first, at any concurrency."""
    visited_cache: int = option(1_000_000, check.whole(1))
    """With `JOBDIR`: number of last visited documents in memory; about 100 bytes each. The Bloom filter before the
    visited set on disk takes at most 268 bytes more for each. A filter that would outgrow this is given up, and each
    new document is looked up on disk."""
    commit_interval_pages: int = option(1000, check.whole(1))
    """With `JOBDIR`: crawled pages after which log, archive and state are committed together. With `STORAGE` in
    continuous order: pages of all partitions, so that each commits after its share of them."""
    commit_interval_seconds: float = option(10.0, check.seconds)
    """The same: seconds after which they are committed."""
    commit_fsync: bool = option(True, check.flag)
    """With `JOBDIR`: whether a commit waits for the disk. Otherwise it survives the end of the process, but a power cut
    can damage the crawl."""
    crawl_max_attempts: int = option(3, check.whole(1))
    """Attempts at a document before it fails."""
    crawl_max_errors: int = option(100, check.whole(1))
    """Consecutive unanticipated errors after which the crawl stops (`too_many_errors`); well above
    `CONCURRENT_REQUESTS`, because errors are noticed later than successes."""
    crawl_parts: tuple[str, ...] = fixed((), check.terms)
    """Dotted paths of your own parts, divided by commas ([extending.md](extending.md#part))."""
    # Not set by users: what a run records of the settings that classes of their own have.
    own_settings: Mapping[str, Any] | None = fixed(None, check.settings_object)


@dataclass(frozen=True, kw_only=True)
class Options(
    ExpertOptions,
    ClusterOptions,
    ArchiveOptions,
    PartsOptions,
    LiveOptions,
    ScoringOptions,
    CorpusOptions,
    CrawlOptions,
):
    """The checked values of all settings, ready for use."""

    @property
    def own(self) -> Mapping[str, Any]:
        """The settings of your own policies and scorers, by name."""
        return self.own_settings or {}

    @property
    def visited_filter_bytes(self) -> int:
        """The most bytes of the Bloom filter in front of the visited set on disk."""
        return _FILTER_BYTES * self.visited_cache

    @property
    def extracts(self) -> bool:
        """True if the scored text is extracted from HTML."""
        return self.simulation_text == "extracted" or self.corpus is None

    def tasks(self, number: int | None) -> Executor:
        """Return an executor of ``number`` tasks; None: the work is not divided. Raises InputError."""
        return Here(number) if self.executor is None else Slurm(number, self.executor)


GROUPS: Final[dict[str, Any]] = {
    "crawl": CrawlOptions,
    "corpus": CorpusOptions,
    "scoring": ScoringOptions,
    "live": LiveOptions,
    "parts": PartsOptions,
    "archive": ArchiveOptions,
    "cluster": ClusterOptions,
    "expert": ExpertOptions,
}
"""The groups of settings, in the order of the reference."""


def setting_name(option: Field[Any]) -> str:
    """Return the name of the Scrapy setting that holds an option."""
    return option.name.upper()


WENT: Final = {
    "CLUEWEB22_LINK_ID_POSITION": "slimmed copies of links are recognised by their length",
    "CORPUS_DUPLICATES": "of several pages with one URL the first is used",
    "ENSEMBLE_NORMALISER": "scores are scaled as by `zscore`",
    "EXECUTOR_OPTIONS": "EXECUTOR takes these options",
    "HOST_EXPLORATION": "the bonus is 0.2",
    "PAGERANK_DAMPING": "d is 0.9, as in Cho et al.",
    "PAGERANK_INTERVAL": "the equations are solved again after 100 pages",
    "REQUEST_LOG": 'EXTENSIONS = {"crawl4llm.live.request_log.RequestLog": None} replaces it',
    "SIMULATION_DATE": "pages without a capture date have 2022-08-01",
    "TEXT_TIME_LIMIT": "a page may take 30 seconds",
    "VISITED_FILTER_BYTES": "VISITED_CACHE replaces it: 268 bytes each",
    "WARC_FSYNC": "COMMIT_FSYNC replaces it, with JOBDIR",
}
"""Former settings, and their replacements."""


_CHECKS: dict[type, Check] = {
    bool: check.flag,
    int: check.whole(-sys.maxsize),
    float: check.real_number(-sys.float_info.max),
    str: check.text_or_empty,
}
"""The check of a setting of an external class, by the type of its default."""


def own_settings(settings: BaseSettings, options: Options) -> dict[str, Any] | None:
    """Return the settings that external policies, scorers and parts name in ``SETTINGS``; None if they name none.

    A value is the one given by its name, otherwise that of OWN_SETTINGS (for a run that is restored), otherwise the
    default. Raises InputError.
    """
    names = [options.scorer, options.url_policy.removeprefix(SCORER_PREFIX)]
    names += parse_weights(options.ensemble_weights) if options.ensemble_weights else []
    names += options.crawl_parts
    recorded = options.own_settings or {}
    own: dict[str, Any] = {}
    for owner in dict.fromkeys(filter(check.is_dotted, names)):
        load: Callable[[str], type] = load_policy if owner == options.url_policy else load_scorer_class
        try:
            found = load_part(owner) if owner in options.crawl_parts else load(owner)
            defaults = getattr(found, "SETTINGS", {})
        except InputError:
            continue  # said by what needs it
        for name, default in defaults.items():
            if not name.isupper() or type(default) not in _CHECKS:
                wanted = "NAME: a bool, int, float or str"
                raise InputError(f"{owner}: SETTINGS has {name!r}: {default!r}; it takes {wanted}")
            if hasattr(options, name.lower()) or settings.getpriority(name) == 0:
                raise InputError(f"{owner}: SETTINGS has {name}, which is a setting of crawl4llm or Scrapy")
            value, priority = settings.get(name), settings.getpriority(name) or 0
            if value is None or (name in recorded and priority < (settings.getpriority("OWN_SETTINGS") or 0)):
                value = recorded.get(name, default)
            with as_input_error(f"{name} = {value!r:.300}", form="{} {}", errors=ValueError):
                own[name] = _CHECKS[type(default)](value)
    return own or None


def wrong_settings(settings: BaseSettings) -> dict[str, str]:
    """Return what is wrong with settings of the project, by their names."""
    return _checked(settings)[1]


def _checked(settings: BaseSettings) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of settings that are given, by the names of options, and what is wrong with others."""
    values: dict[str, Any] = {}
    wrong = {
        name: f"setting {name} was removed: {instead}; leave it out"
        for name, instead in WENT.items()
        if settings.get(name) is not None
    }
    for entry in fields(Options):
        name = setting_name(entry)
        value = settings.get(name)
        try:
            if value is not None:
                values[entry.name] = entry.metadata["check"](value)
        except ValueError as error:
            wrong[name] = f"{name} = {entry.metadata['shown'](value)!r:.300} {error}"
    return values, wrong


def read_options(settings: BaseSettings) -> Options:
    """Check all settings of the project. Raises InputError that names the first wrong one.

    Label and extractor default to the rules beside SCORER_MODEL, if it has any.
    """
    values, wrong = _checked(settings)
    for fault in wrong.values():
        raise InputError(fault)
    options = Options(**values)
    return follow_rules(replace(options, own_settings=own_settings(settings, options)), values)


def meanings(owner: type) -> dict[str, str]:
    """Return the meanings of the fields of a class, by name: their docstrings. Other fields are not set by users."""
    found = {}
    for kind in filter(is_dataclass, owner.__mro__):
        (tree,) = ast.parse(inspect.getsource(kind)).body
        assert isinstance(tree, ast.ClassDef)
        for pair in pairwise(tree.body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                    found[name] = " ".join(said.split())
    return found


def reference() -> str:
    """Return the settings reference: for each group a Markdown table."""
    tables = []
    for group, owner in GROUPS.items():
        rows = [f"## {group.capitalize()}", "", "|setting|default|meaning|", "|-|-|-|"]
        said = meanings(owner)
        rows += [f"|`{setting_name(o)}`|`{o.default!r}`|{said[o.name]}|" for o in fields(owner) if o.name in said]
        tables.append("\n".join(rows) + "\n")
    return "\n".join(tables)

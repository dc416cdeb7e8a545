"""The project's settings: one table with name, default, check and meaning.

Every setting of crawl4llm is a field of :class:`Options`, which unites a class for each group: those of live crawls are
in :mod:`crawl4llm.live_options`, those of parts in :mod:`crawl4llm.parts`, those of crawls by several workers in
:mod:`crawl4llm.cluster_options`, all others here. The field ``crawl_max_pages`` is the Scrapy
setting ``CRAWL_MAX_PAGES``. The settings reference (docs/settings.md) is generated from this table; a test holds it to
it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.shard_tasks import LOCAL, SLURM, Executor
from crawl4llm.cluster_options import ClusterOptions
from crawl4llm.live_options import LiveOptions
from crawl4llm.option_checks import (
    address,
    file_name_part,
    fixed,
    flag,
    is_corpus_class,
    is_dotted,
    one_of,
    option,
    optional_text,
    own_settings,
    policy_name,
    real_number,
    scorer_name,
    scorer_weights,
    seconds,
    settings_object,
    share,
    some_of,
    terms,
    text,
    text_or_empty,
    weighs_dotted,
    whole,
)
from crawl4llm.parts import Settings as PartsOptions
from crawl4llm.parts import load_part
from crawl4llm.scoring.model_rules import follow_rules
from crawl4llm.scoring.text import EXTRACTORS

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_WORKERS_PER_CORE = 4  # more would only take memory from each other
_FILTER_BYTES = 268
"""For each visited document in memory: by default as many as filters of 109 million documents take."""

DEMO = "demo"
"""The value of CORPUS that means the demo web."""


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _number_of_workers(value: Any) -> int:
    """Return the number of processes to start, -1 for as many as there are cores."""
    number: int = whole(-1)(value)
    if number > _WORKERS_PER_CORE * cores():
        most = f"{_WORKERS_PER_CORE * cores()}: {_WORKERS_PER_CORE} for each of the {cores()} cores here"
        raise ValueError(f"must be at most {most}")
    return number


@dataclass(frozen=True, kw_only=True)
class CrawlOptions:
    """The checked values of settings for what is crawled, in which order, and where it is written."""

    url_policy: str = fixed(
        "influence",
        policy_name,
        "The policy that orders the frontier: its name, the dotted path of a policy class, or `scorer:` and a scorer "
        "as `SCORER` takes it. Such a scorer rates each page before it is crawled.",
        imports=is_dotted,
    )
    order: str = fixed("desc", one_of("desc", "asc"), "Whether the highest scores come first, or (`asc`) the lowest.")
    hot_queue_topic: tuple[str, ...] = fixed(
        (),
        terms,
        "Words or phrases, divided by commas. Documents with one of them in URL or anchor come before all others, "
        "whatever the policy. So do documents within 3 links of a page that speaks of one. Empty: none.",
    )
    harmonic_ranks: str | None = fixed(
        None,
        optional_text,
        "`harmonic`: path of Common Crawl's ranks of hosts or domains, or of two columns, a document's key and its "
        "value, as `scrapy corpus ranks` writes them; gzip or not.",
    )
    ensemble_weights: str = fixed(
        "",
        scorer_weights,
        "`ensemble`: scorers, as `SCORER` takes them, and their weights: `fasttext:1,length:0.5`.",
        imports=weighs_dotted,
    )
    crawl_max_pages: int = option(1000, whole(1), "N: the number of crawled pages at which the crawl ends.")
    crawl_batch_size: int = fixed(
        100, whole(0), "n: pages crawled in an iteration. 0: continuous order, the best document next."
    )
    crawl_seed: int = fixed(0, whole(0), "Seed of everything random.")
    crawl_seeds: int = option(100, whole(1), "Random documents of the corpus to start from where no seeds are given.")
    crawl_patience: float = option(
        0.0,
        share,
        "If owners wait: documents that score below this quantile (0 to 1) of the owners' best documents are not "
        "fetched now ([live.md](live.md#what-waiting-costs)).",
    )
    frontier_max_urls: int = fixed(
        0,
        whole(0),
        "Documents that may wait in the frontier; beyond that the worst are dropped as `frontier_full`. 0: any number.",
    )
    frontier_max_urls_per_host: int = fixed(
        0,
        whole(0),
        "The same by host, dropped as `host_full`; makes a frontier on disk some times slower. 0: any number.",
    )
    output_dir: str | None = option(
        None,
        optional_text,
        "Folder of the crawl's output; left out: a new numbered folder under `crawls/`. It may hold other files, but "
        "none that a crawl would write. A start that is refused leaves nothing there but `errors.log`.",
    )
    dry_run: bool = option(
        False, flag, "Check all settings, crawl 200 pages into a temporary folder, and say what the crawl would take."
    )
    progress_bar: str = option(
        "auto", one_of("auto", "on", "off"), "Progress bar instead of log lines; `auto`: on a terminal only."
    )
    live_logging: tuple[str, ...] = option(
        (),
        some_of("tensorboard", "wandb"),
        "Services that get figures while the crawl runs: `tensorboard`, `wandb`, or both, divided by a comma; each "
        "needs the extra of its name.",
    )
    metrics_port: str | None = option(
        None,
        address,
        "Port at which the figures are served for Prometheus while the crawl runs, on this machine only, or an address "
        "of it: `9410`, `0.0.0.0:9410` ([monitoring.md](monitoring.md)); needs the extra `metrics`.",
    )


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """The checked values of settings for the corpus of a simulation."""

    corpus: str | None = option(
        None,
        optional_text,
        "The corpus of a simulated crawl: `demo` (the simulation profile's default), the root of a ClueWeb22 tree, "
        "WARC files, or the dotted path of a class ([of your own](extending.md)). WARC files are given as a file, a "
        "folder, a glob pattern, or a text file with a list of paths.",
        imports=is_corpus_class,
    )
    corpus_canonical_links: bool = fixed(
        False, flag, "WARC files: whether a page is also found under the URL that its canonical link names."
    )
    clueweb22_target_prefix: str = fixed(
        "",
        str,
        "Only documents whose id starts so are targets of links; the paper's crawl takes `clueweb22-en0`. "
        "Empty: whatever the tree holds.",
    )
    simulation_text: str = fixed(
        "corpus",
        one_of("corpus", "extracted"),
        "The text that is scored: the clean text of the `corpus`, or text `extracted` from its HTML.",
    )
    simulation_owner_delay: float = fixed(
        0.0,
        real_number(0),
        "Virtual seconds for which owners wait after a fetch ([live.md](live.md#what-waiting-costs)).",
    )
    simulation_capacity: float = fixed(
        10.0, real_number(0), "With `SIMULATION_OWNER_DELAY`: fetches in a virtual second, at most. 0: any number."
    )


@dataclass(frozen=True, kw_only=True)
class ScoringOptions:
    """The checked values of settings for influence scores."""

    text_extractor: str = fixed(
        "trafilatura",
        one_of(*EXTRACTORS),
        "Extractor of main text from HTML. Not set: taken from the rules beside `SCORER_MODEL`, if there are any.",
    )
    scorer: str = fixed(
        "fasttext",
        scorer_name,
        "The scorer that rates the text of a page: its name, or a dotted path. Its score is the influence.",
        imports=is_dotted,
    )
    scorer_model: str | None = option(
        None,
        optional_text,
        "Path of the fastText classifier (`.bin` or `.ftz`); may be left out for the demo web, which brings its own.",
    )
    scorer_label: str = fixed(
        "__label__hq",
        text,
        "The classifier's label whose probability is the influence score. Not set: taken from the rules beside "
        "`SCORER_MODEL` (`MODEL.json`, by `scrapy trainscorer`), if there are any.",
    )
    scoring_workers: int = option(
        -1,
        _number_of_workers,
        "Processes that look up, extract and score, 4 for each core at most; -1: one for each core; 0: none, the "
        "crawler's own process does it, without a time limit.",
    )
    score_cache: str | None = option(
        None,
        text_or_empty,
        "Simulations: folder in which influence scores are kept, for other crawls and `scrapy evaluate` "
        "([simulation-and-live.md](simulation-and-live.md#the-score-cache)). Not set: `scores` in the project's "
        "`.scrapy`; empty: none.",
    )


@dataclass(frozen=True, kw_only=True)
class ArchiveOptions:
    """The checked values of settings for the archive."""

    warc_enabled: bool = fixed(True, flag, "Whether crawled pages are archived.")
    warc_max_bytes: int = fixed(1_000_000_000, whole(1), "Compressed size at which a WARC file is closed.")
    warc_prefix: str = fixed("crawl4llm", file_name_part, "First part of the names of WARC files.")
    warc_max_age: float = option(
        0.0,
        real_number(0),
        "Live crawls: seconds after which a WARC file is closed, at the next commit. 0: any age. A simulation has no "
        "clock and does not heed it.",
    )
    warc_compression: str = fixed(
        "gzip",
        one_of("gzip", "zstd"),
        "How each record is compressed: `gzip`, which all tools read, or `zstd` (`.warc.zst`), smaller and for fewer.",
    )
    warc_text: bool = fixed(
        False,
        flag,
        "Whether the main text of crawled pages is archived too, in files of its own: the text that is scored.",
    )
    warc_revisits: int = fixed(
        1_000_000,
        whole(0),
        "Live crawls: payloads that are remembered, the last ones, so that none of them is stored again but in a "
        "`revisit` record; about 250 bytes of memory each. 0: none.",
    )
    warc_operator: str | None = option(None, optional_text, "Who runs the crawl, for the `warcinfo` record.")
    archive_credentials: bool = fixed(
        False,
        flag,
        "Whether archived requests keep `Cookie` and `Authorization` as they were sent; only their owner may then read "
        "the WARC files.",
    )


@dataclass(frozen=True, kw_only=True)
class ExpertOptions:
    """The checked values of settings for what few crawls need."""

    executor: Mapping[str, Any] | None = option(
        None,
        settings_object,
        "`--tasks` divides the work of commands into tasks ([offline-jobs.md](offline-jobs.md)). They run in processes "
        "of this machine or, with this, in jobs that datatrove submits to Slurm: options of its SlurmPipelineExecutor, "
        'as a JSON object, such as `{"partition": "cpu", "time": "8:00:00"}`; needs the extra `offline`.',
    )
    crawl_concurrent_leases: int = option(
        0,
        whole(0),
        "Continuous order: documents taken from the frontier and not yet done, at most; 0: `CONCURRENT_REQUESTS`. "
        "With 1 the order is the strict best-first one, whatever the concurrency.",
    )
    visited_cache: int = option(
        1_000_000,
        whole(1),
        "With `JOBDIR`: visited documents that are remembered in memory, the last ones; about 100 bytes each. The "
        "Bloom filter in front of the visited set on disk takes 268 bytes more for each at most. A filter that would "
        "grow beyond is given up, and each new document is looked up on disk.",
    )
    commit_interval_pages: int = option(
        1000,
        whole(1),
        "With `JOBDIR`: pages crawled after which log, archive and state are committed together. With `STORAGE` in "
        "continuous order: of all partitions, so that each commits after its part of them.",
    )
    commit_interval_seconds: float = option(10.0, seconds, "The same: seconds after which they are committed.")
    commit_fsync: bool = option(
        True,
        flag,
        "With `JOBDIR`: whether a commit waits for the disk. Without, it survives the end of the process, but a power "
        "cut can damage the crawl.",
    )
    crawl_max_attempts: int = option(3, whole(1), "Leases of a document before it is given up as failed.")
    crawl_max_errors: int = option(
        100,
        whole(1),
        "Unanticipated errors in a row after which the crawl stops (`too_many_errors`); well above "
        "`CONCURRENT_REQUESTS`, since errors are heard of later than what goes well.",
    )
    crawl_parts: tuple[str, ...] = fixed(
        (),
        terms,
        "Dotted paths of parts of your own, divided by commas ([extending.md](extending.md#part)).",
    )
    own_settings: Mapping[str, Any] | None = fixed(None, settings_object, "")
    """Not set by users: what a run records of the settings that classes of their own have."""


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
        """The settings of a policy or scorer of somebody else, by name."""
        return self.own_settings or {}

    @property
    def visited_filter_bytes(self) -> int:
        """The most bytes of the Bloom filter in front of the visited set on disk."""
        return _FILTER_BYTES * self.visited_cache

    @property
    def workers(self) -> int:
        """The number of scoring processes to start; 0 for none."""
        return cores() if self.scoring_workers < 0 else self.scoring_workers

    def tasks(self, number: int | None) -> Executor:
        """Return what runs so many tasks; None: the work is not divided. Raises InputError."""
        return Executor.of(LOCAL if self.executor is None else SLURM, number, self.executor)


GROUPS: Final = {
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
    "CLUEWEB22_LINK_ID_POSITION": "slimmed copies of links are told by their length",
    "CORPUS_DUPLICATES": "of several pages with one URL the first is held",
    "ENSEMBLE_NORMALISER": "scores are put on one scale as `zscore` did",
    "EXECUTOR_OPTIONS": "EXECUTOR takes these options",
    "HOST_EXPLORATION": "the bonus is 0.2",
    "PAGERANK_DAMPING": "d is 0.9, as of Cho et al.",
    "PAGERANK_INTERVAL": "the equations are solved again after 100 pages",
    "REQUEST_LOG": 'EXTENSIONS = {"crawl4llm.live.request_log.RequestLog": None} takes its place',
    "SIMULATION_DATE": "pages without a capture date have 2022-08-01",
    "TEXT_TIME_LIMIT": "a page may take 30 seconds",
    "VISITED_FILTER_BYTES": "VISITED_CACHE takes its place: 268 bytes each",
    "WARC_FSYNC": "COMMIT_FSYNC takes its place, with JOBDIR",
}
"""Settings that went, and what took their place."""


def read_options(settings: BaseSettings) -> Options:
    """Check all settings of the project. Raises InputError that names the first wrong one.

    Label and extractor that are not set are those of the rules beside SCORER_MODEL, if it has any.
    """
    for name, instead in WENT.items():
        if settings.get(name) is not None:
            raise InputError(f"setting {name} went: {instead}; leave it out")
    values: dict[str, Any] = {}
    given = set()
    for entry in fields(Options):
        name = setting_name(entry)
        value = settings.get(name)
        if value is None:
            values[entry.name] = entry.default
            continue
        given.add(name)
        try:
            values[entry.name] = entry.metadata["check"](value)
        except ValueError as error:
            raise InputError(f"{name} = {entry.metadata['shown'](value)!r:.300} {error}") from None
    options = Options(**values)
    own = own_settings(settings, options, dict.fromkeys(options.crawl_parts, load_part))
    return follow_rules(replace(options, own_settings=own), given)


def reference() -> str:
    """Return the settings reference: for each group a Markdown table."""
    tables = []
    for group, owner in GROUPS.items():
        rows = [f"## {group.capitalize()}", "", "| setting | default | meaning |", "|-|-|-|"]
        rows += [
            f"| `{setting_name(o)}` | `{o.default!r}` | {o.metadata['meaning']} |"
            for o in fields(owner)
            if o.metadata["meaning"]
        ]
        tables.append("\n".join(rows) + "\n")
    return "\n".join(tables)

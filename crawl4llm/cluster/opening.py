"""Joining a crawl: refuses crawls that several workers cannot do, and the storage of another crawl."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from crawl4llm.base.domains import OWNER_RULES
from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Corpus
from crawl4llm.base.terminal import harmless
from crawl4llm.cluster import objects
from crawl4llm.cluster.continuous import ContinuousCrawl
from crawl4llm.cluster.crawl import ClusterCrawl
from crawl4llm.cluster.liveness import Liveness, ValkeyLiveness
from crawl4llm.cluster.worker import Common, Partitions
from crawl4llm.crawl import fixed_settings
from crawl4llm.options import Options
from crawl4llm.parts import ALONE, EVERYWHERE, ORDER, load_part
from crawl4llm.policies import NO, Policy

_LEASES: Final = 2.5
"""That an exchange may last."""


def refuse_settings(options: Options, *, is_live: bool, has_clock: bool, has_jobdir: bool) -> None:
    """Raise InputError for settings that cannot be combined with STORAGE, before anything is opened."""
    if options.storage is None:
        raise InputError("CLUSTER is set without STORAGE; set both, or neither")
    in_batches = bool(options.crawl_batch_size)
    refused = {
        "a live crawl in batches: set CRAWL_BATCH_SIZE=0 for continuous order": is_live and in_batches,
        "SIMULATION_OWNER_DELAY": has_clock and not is_live,
        "JOBDIR: STORAGE keeps the crawl itself, and the same command resumes it": has_jobdir,
        "WARC_TEXT": options.warc_text,
        "DRY_RUN": options.dry_run,
        **_refused_parts(options, in_batches=in_batches),
        "HOT_QUEUE_TOPIC": bool(options.hot_queue_topic),
        "FRONTIER_MAX_URLS": bool(options.frontier_max_urls),
        "FRONTIER_MAX_URLS_PER_HOST": bool(options.frontier_max_urls_per_host),
    }
    for what, is_set in refused.items():
        if is_set:
            raise InputError(f"STORAGE cannot be combined with {what}; leave one of them out")


def _refused_parts(options: Options, *, in_batches: bool) -> dict[str, bool]:
    """Return the settings of parts that not all crawls with STORAGE may have, and whether this one must not."""
    no, refused = {ALONE: True, EVERYWHERE: False}, {}
    for part in ORDER:
        what = part.setting if part.partitioned == ALONE else f"{part.setting} in batch order"
        refused[what] = part.asked(options) and no.get(part.partitioned, in_batches)
    others = {f"the part {path}": no.get(load_part(path).partitioned, in_batches) for path in options.crawl_parts}
    return refused | others


def check_lease(options: Options, timeout: float) -> None:
    """Raise InputError if a lost worker may still have a request in flight when its successor sends one to the same
    owner. Such a request lasts up to ``timeout`` seconds, and begins up to half a lease after the worker's last
    heartbeat. The successor sends its first after four leases, or after three if Valkey was wiped."""
    if options.cluster is not None and timeout > _LEASES * options.cluster_lease:
        raise InputError(
            f"CLUSTER_LEASE = {options.cluster_lease:g} is too short for DOWNLOAD_TIMEOUT = {timeout:g}: a lost "
            "worker could still send requests to an owner that another worker has taken over; set CLUSTER_LEASE to "
            f"{timeout / _LEASES:g} or more, or DOWNLOAD_TIMEOUT to {_LEASES * options.cluster_lease:g} or less"
        )


def divided(policy: Policy, corpus: Corpus, options: Options) -> Partitions:
    """Return the division of documents among partitions. Raises InputError if it is unknown, and for a policy that
    cannot be divided."""
    if options.partitions > 1 and options.crawl_batch_size and getattr(policy, "partitioned", NO) == NO:
        raise InputError(
            f"URL_POLICY {policy.name} learns from all crawled pages, and cannot be divided among "
            f"{options.partitions} partitions in batch order; use "
            "another policy, CRAWL_PARTITIONS=1 or CRAWL_BATCH_SIZE=0"
        )
    return Partitions(options.partitions, corpus)


def open_cluster(
    common: Common, facts: Mapping[str, Any], seed_counts: Mapping[str, int], join: Callable[[str], None]
) -> ClusterCrawl | ContinuousCrawl:
    """Begin the crawl in its storage, or join it. ``facts`` are those of a run's settings.json; ``join`` is called with
    the id of the crawl in the storage, and may refuse. Raises InputError."""
    options, storage = common.options, common.storage
    mine = _identity(options, facts)
    stored = objects.read_crawl(storage)
    if stored is None:
        there = set(storage.names(""))
        if there - {objects.SEEDS} and objects.CRAWL not in there:  # unless another worker began just now
            raise InputError(f"STORAGE {storage.url} holds something other than a crawl; give an empty folder")
        storage.put(objects.SEEDS, "".join(f"{key}\n" for key in common.seeds).encode("utf-8", "surrogatepass"))
        info = common.info
        archive = {"prefix": info.prefix, "start_date": info.start_date, "fields": info.fields}
        about = {"format": objects.FORMAT, "id": str(uuid.uuid4()), "identity": mine, "facts": facts}
        storage.put_packed(objects.CRAWL, {**about, "archive": archive, "seeds": seed_counts})
        stored = objects.read_crawl(storage)
    if stored is None or storage.put_packed(objects.CRAWL, stored):  # the same bytes: no harm where it goes through
        raise InputError(
            f"STORAGE {storage.url} overwrites existing objects, because it lacks conditional writes; use another"
        )
    theirs = stored["identity"]
    different = [
        f"{harmless(name)} is {theirs.get(name)!r} there, {mine.get(name)!r} here"
        for name in sorted({*theirs, *mine})
        if theirs.get(name) != mine.get(name)
    ]
    if different:
        raise InputError(
            f"STORAGE {storage.url} holds another crawl: {'; '.join(different)}; give the same, or another folder"
        )
    liveness = Liveness(options.partitions)
    if options.cluster is not None:
        liveness = ValkeyLiveness(options.cluster, stored["id"], options.partitions, options.cluster_lease)
    join(stored["id"])
    if options.crawl_batch_size:
        return ClusterCrawl(common, liveness)
    info = replace(common.info, crawl_id=uuid.UUID(stored["facts"]["crawl_id"]))
    return ContinuousCrawl(common._replace(info=info), liveness)


def _identity(options: Options, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return all facts that decide the pages, their order, and the division of work, as JSON has them."""
    decides = {name: value for name, value in facts.items() if name not in ("crawl_id", "versions", "settings")}
    identity = {
        **fixed_settings(options),
        **decides,
        "CRAWL_MAX_PAGES": options.crawl_max_pages,
        "CRAWL_PARTITIONS": options.partitions,
        "owner rules": OWNER_RULES,
        "version": facts["versions"]["crawl4llm"],
    }
    as_json: dict[str, Any] = json.loads(json.dumps(identity, default=str))
    return as_json

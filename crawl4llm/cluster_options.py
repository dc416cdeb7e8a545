"""The settings of crawls by several workers; the other fields of the table are in :mod:`crawl4llm.options`.

A run's ``settings.json`` has none of them: they name workers and storage, not pages, and CLUSTER may hold a password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from crawl4llm.base.settings import option, optional, seconds, text, whole

_PARTITIONS: Final = 64
MOST_PARTITIONS: Final = 1 << 16


def without_secrets(url: Any) -> Any:
    """Return a URL without user, password and query, for display."""
    if not isinstance(url, str):
        return url
    return re.sub(r"[?].*", "", re.sub(r"^(\w+://)?.*@", r"\1***@", url, flags=re.DOTALL), flags=re.DOTALL)


@optional
def _server(value: Any) -> str:
    """Check the URL of a Valkey or Redis server."""
    wanted = "must be like valkey://HOST:6379/0 (valkeys:// with TLS; also redis://, rediss://, unix:///PATH)"
    parts = _parts(value, wanted)
    place = parts.path if parts.scheme == "unix" else parts.hostname and (parts.path.strip("/") or "0").isdecimal()
    if parts.scheme not in ("valkey", "valkeys", "redis", "rediss", "unix") or not place:
        raise ValueError(wanted)
    return str(value)


@optional
def storage_url(value: Any) -> str:
    """Check the URL of a bucket's folder or of a directory."""
    wanted = "must be like s3://BUCKET/FOLDER or file:///FOLDER, and no more"
    parts = _parts(value, wanted)
    place = (parts.scheme == "s3" and parts.netloc) or (parts.scheme == "file" and not parts.netloc and parts.path)
    if not place or "@" in parts.netloc or parts.query or parts.fragment or not value.isprintable():
        raise ValueError(wanted)
    return str(value)


def _parts(value: Any, wanted: str) -> SplitResult:
    """Return the parts of a URL with a numeric port."""
    given = text(value)
    try:
        parts = urlsplit(given)
        parts.port  # noqa: B018 - raises where it is none
    except ValueError:
        raise ValueError(wanted) from None
    return parts


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ClusterOptions:
    """The checked values of settings for crawls by several workers."""

    cluster: str | None = option(None, _server, shown=without_secrets)
    """URL of a Valkey server (or Redis from 6.2 on), like `valkey://HOST:6379/0` (`valkeys://` with TLS). The workers
    of a crawl divide its partitions through it. Needs `STORAGE` and the extra `cluster`. Not set: no other worker."""
    storage: str | None = option(None, storage_url, shown=without_secrets)
    """Storage of the crawl and its archive, for all workers: `s3://BUCKET/FOLDER`, or a shared directory as
    `file:///FOLDER`; needs the extra `cluster`. Not set: a crawl of one process."""
    crawl_partitions: int = option(0, whole(0, MOST_PARTITIONS))
    """With `STORAGE`: partitions of the crawl, which workers divide among themselves, 65,536 at most. 0: 64."""
    cluster_lease: float = option(30.0, seconds)
    """With `CLUSTER`: seconds without a sign of a worker after which another one may take over; it waits as long again.
    A worker without contact stops after half of them. In live crawls at least 0.4 times `DOWNLOAD_TIMEOUT`."""

    @property
    def partitions(self) -> int:
        """The number of partitions of the crawl, P."""
        return 1 if self.storage is None else self.crawl_partitions or _PARTITIONS


def without_cluster(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by name, without those of this table."""
    own = {entry.name.upper() for entry in fields(ClusterOptions)}
    return {name: value for name, value in settings.items() if name not in own}

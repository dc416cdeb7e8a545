"""The settings of live crawls only; the other fields of the table are in :mod:`crawl4llm.options`."""

from dataclasses import dataclass

from crawl4llm.base.settings import flag, networks, option, optional_text, real_number, seconds, waits, whole


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class LiveOptions:
    """The checked values of settings that a simulation ignores."""

    delay_factor: float = option(5.0, real_number(0))
    """Live crawls in continuous order: an owner waits this many times the duration of its last exchange, up to 60
    seconds, if that is more than `DOWNLOAD_DELAY`. 0: off."""
    ip_rate: float = option(2.0, real_number(0))
    """Live crawls in continuous order: most requests a second to one IP address, for all owners on it together. 0: any
    number."""
    retry_waits: tuple[float, ...] = option((60.0, 600.0, 3600.0), waits)
    """Live crawls in continuous order: seconds for which an owner is left alone after the first, second, third ...
    consecutive error. Errors are `timeout`, `refused` and `connection` of a site, and the statuses 429, 502, 503 and
    504. One more of the former gives up a site that never answered: all its documents fail. A host without an address
    is looked up once for each wait; a robots.txt that fails is requested once more."""
    crawl_delay_cap: float = option(300.0, seconds)
    """Live crawls in continuous order: the longest `Crawl-delay` that is obeyed, in seconds; owners that ask for more
    are [parked](operating.md#parked-owners)."""
    crawl_wait: float = option(300.0, seconds)
    """Live crawls in continuous order: seconds until the crawl ends if all owners are parked (`only_parked`), only
    unanswered sites are left (`unanswered`), or the network is down (`no_network`)."""
    disk_min_free: int = option(500_000_000, whole(0))
    """Live crawls: free bytes on a disk below which they stop (`disk_low`). 0: never."""
    shutdown_grace: float = option(10.0, real_number(0))
    """Live crawls: seconds that requests in flight have after Ctrl-C or SIGTERM; then they are aborted, and repeated
    when the crawl is resumed."""
    network_allowed: tuple[str, ...] = option((), networks)
    """Live crawls: private networks that may be asked, such as `127.0.0.1/32`, divided by commas. Empty: none
    ([Network safety](security.md#network-safety))."""
    body_limit: int = option(1 << 20, whole(0))
    """Live crawls: most bytes of a body, as they come over the wire. A longer page is cut there, and archived with
    `WARC-Truncated: length`. 0: no limit, and `DOWNLOAD_MAXSIZE` drops pages
    ([Answers](fetching.md#answers))."""
    sitemaps: int = option(0, whole(0))
    """Live crawls: most URLs of an owner from the sitemaps that its robots.txt names; 0: sitemaps are not read
    ([Sitemaps](fetching.md#sitemaps))."""
    dns_hosts: str | None = option(None, optional_text)
    """Live crawls: a file like `/etc/hosts`. Its hosts have the addresses in it, and other hosts have none; for [test
    webs](first-live-crawl.md#a-local-test-web)."""
    opt_out_fetch: bool = option(False, flag)
    """Live crawls: whether pages that may not be trained on are fetched and archived; they are marked and never
    exported ([opt-outs.md](opt-outs.md))."""

"""The settings of live crawls alone; the other fields of the table are in :mod:`crawl4llm.options`."""

from dataclasses import dataclass

from crawl4llm.base.settings import flag, networks, option, optional_text, real_number, seconds, waits, whole


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class LiveOptions:
    """The checked values of settings that a simulation does not heed."""

    delay_factor: float = option(5.0, real_number(0))
    """Live crawls in continuous order: an owner waits this many times the duration of its last exchange, up to 60
    seconds, if that is more than `DOWNLOAD_DELAY`. 0: off."""
    ip_rate: float = option(2.0, real_number(0))
    """Live crawls in continuous order: requests a second to one IP address, over all owners that it serves. 0: any
    number."""
    retry_waits: tuple[float, ...] = option((60.0, 600.0, 3600.0), waits)
    """Live crawls in continuous order: seconds for which an owner is left alone after the first, second, third ...
    error in a row. Errors are `timeout`, `refused` and `connection` of a site, and the statuses 429, 502, 503 and 504.
    One more of the former gives up a site that never answered: all its documents fail. A host without an address is
    looked up once for each wait; a robots.txt that fails is asked for once more."""
    crawl_delay_cap: float = option(300.0, seconds)
    """Live crawls in continuous order: seconds of the longest `Crawl-delay` that is waited for; owners who ask for more
    are [parked](operating.md#parked-owners)."""
    crawl_wait: float = option(300.0, seconds)
    """The same: seconds until the crawl ends where all is parked (`only_parked`), where only sites are left that never
    answered (`unanswered`), or where there is no network (`no_network`)."""
    disk_min_free: int = option(500_000_000, whole(0))
    """Live crawls: free bytes on a disk below which they stop (`disk_low`). 0: never."""
    shutdown_grace: float = option(10.0, real_number(0))
    """Live crawls: seconds that requests on the wire have after Ctrl-C or SIGTERM; then they are aborted, and asked for
    again when the crawl is resumed."""
    network_allowed: tuple[str, ...] = option((), networks)
    """Live crawls: private networks that may be asked, such as `127.0.0.1/32`, divided by commas. Empty: none
    ([Network safety](security.md#network-safety))."""
    body_limit: int = option(1 << 20, whole(0))
    """Live crawls: bytes of a body that are taken, as they come over the wire. The page is cut there, and archived with
    `WARC-Truncated: length`. 0: no limit, and `DOWNLOAD_MAXSIZE` drops pages
    ([Answers](fetching.md#answers))."""
    sitemaps: int = option(0, whole(0))
    """Live crawls: URLs that are taken of an owner from sitemaps that robots.txt names, at most; 0: these are not read
    ([Sitemaps](fetching.md#sitemaps))."""
    dns_hosts: str | None = option(None, optional_text)
    """Live crawls: a file written like `/etc/hosts`. Its hosts have the addresses that it says, and no other hosts have
    any: for [webs to try a crawl on](first-live-crawl.md#a-local-test-web)."""
    opt_out_fetch: bool = option(False, flag)
    """Live crawls: whether pages are fetched and archived that may not be trained on; they are marked and never
    exported ([opt-outs.md](opt-outs.md))."""

"""What crawlers bring home of a web of real software, which runs on loopback with names and TLS.

    python -m benchmarks.websoftware [--requests 3000] [--delay 0.5] [--by-software] [--seed-sets 5] [--before FILE]
                                     [--crawlers link,parent_first] [--build | --check | --serve | --report]
                                     [--install] [--small] [--state FOLDER] [--out FOLDER]

The first run builds the web from Debian's packages (``--install`` installs them), the package index and npm. It fills
the web with texts of ../shared/corpora/real-web, each used once; this takes about half an hour. Then crawl4llm crawls
it live by ``link`` and by ``parent_first`` with the shipped profile, and plain Scrapy breadth first with trafilatura,
as it is and with Nutch's default URL filter. ``--by-software`` crawls each software by itself, 300 requests a crawl.
A request is useful if it is the first that brings a text whose source scores above 0.5; the servers' logs decide,
robots.txt and tdmrep.json apart. Figures of another composition are not compared with. Nothing is measured, and the
reason is said, if packages are missing or ports cannot be had. ``--small`` has two sites of the package index alone.
Scrapy's crawls are kept for a composition until its code or that of benchmarks/websoftware/peers.py changes, and
reported beside later crawls of crawl4llm; ``--crawlers`` says who crawls now.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from benchmarks.corpora import SHARED, kept
from benchmarks.results import add_output, publish
from benchmarks.websoftware import building, composition
from benchmarks.websoftware.checking import Browser, faults
from benchmarks.websoftware.crawls import CRAWLERS
from benchmarks.websoftware.measuring import Measurements, code, peers_code
from benchmarks.websoftware.planning import Plan, plan
from benchmarks.websoftware.reporting import result
from benchmarks.websoftware.running import running
from benchmarks.websoftware.site import Site
from benchmarks.websoftware.texts import first_texts, texts
from crawl4llm.base.errors import InputError

_SMALL_OPTIONS = {"socket": "127.0.0.1:38201"}
"""Of its one site that has a server of its own: another port than in the whole web."""
_SMALL_GOOD, _SMALL_LOW, _SMALL_TEXTS = 12, 2, 60


def reason_to_skip(sites: tuple[Site, ...], *, serves: bool) -> str | None:
    """Return why nothing can be measured here; None if it can."""
    if not (SHARED / "corpora/real-web").exists():
        return f"{SHARED / 'corpora/real-web'} is not there"
    if missing := building.lacking(sites):
        return f"{', '.join(missing[:5])} not installed; --install installs Debian's packages"
    if not serves:
        return None
    address = composition.addresses(sites)[sites[0].host]
    with socket.socket() as probe:
        try:
            probe.bind((address, 80))
        except OSError as error:
            return f"port 80 of {address} cannot be had ({error.strerror})"
    return None


def install() -> None:
    """Install Debian's packages; none of their services is started. A Node.js from elsewhere, which conflicts with
    Debian's, stays."""
    has_node = all(map(shutil.which, building.NODE))
    packages = [name for name in building.DEBIAN if not (has_node and name in building.NODE.values())]
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    subprocess.run(["apt-get", "update", "--quiet"], check=True)
    subprocess.run(command, check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"})


def small() -> tuple[Site, ...]:
    """Return the sites of the small web."""
    chosen = [site for site in composition.SITES if site.name in composition.SMALL]
    return tuple(
        replace(site, good=_SMALL_GOOD, low=_SMALL_LOW, server="front", options={**site.options, **_SMALL_OPTIONS})
        for site in chosen
    )


def crawlers(given: str) -> list[str]:
    """Return the crawlers that ``--crawlers`` names. Raises ArgumentTypeError if one does not exist."""
    names = list(dict.fromkeys(given.split(",")))
    if unknown := [name for name in names if name not in CRAWLERS]:
        raise argparse.ArgumentTypeError(f"no crawler {unknown[0]!r}; choose from {', '.join(CRAWLERS)}")
    return names


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=3000, help="of a crawl of the whole web (%(default)s)")
    parser.add_argument("--own-requests", type=int, default=300, help="of a crawl of one software (%(default)s)")
    parser.add_argument(
        "--delay", type=float, default=0.5, help="DOWNLOAD_DELAY of crawls of the whole web (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the seeds of crawls of the whole web (%(default)s)")
    parser.add_argument("--crawlers", type=crawlers, default=list(CRAWLERS), help="some crawlers, with commas between")
    parser.add_argument("--by-software", action="store_true", help="crawl each software by itself, too")
    parser.add_argument("--only", default="", help="some software, with commas between")
    parser.add_argument("--seed-sets", type=int, default=5, help="for crawls of one software (%(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="crawls of one software at once (%(default)s)")
    parser.add_argument("--before", type=Path, help="JSON of a former run to compare with")
    parser.add_argument("--build", action="store_true", help="build the web and end")
    parser.add_argument("--check", action="store_true", help="ask for each text once, and tell which are not shown")
    parser.add_argument("--report", action="store_true", help="tell what was measured so far, crawl nothing")
    parser.add_argument("--serve", action="store_true", help="serve the web until Ctrl-C")
    parser.add_argument("--install", action="store_true", help="install Debian's packages first")
    parser.add_argument("--small", action="store_true", help="two sites")
    parser.add_argument("--state", type=Path, default=kept() / "websoftware", help="folder of the web (%(default)s)")
    add_output(parser)
    return parser.parse_args()


def main() -> int:
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # what was started is stopped
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["PATH"] += ":/usr/sbin"  # Debian's servers, for users other than root
    sites = small() if args.small else composition.SITES
    if args.install:
        install()
    if reason := reason_to_skip(sites, serves=not (args.build or args.report)):
        print(f"skipped: {reason}")
        return 0
    state = args.state / "small" if args.small else args.state
    state.mkdir(parents=True, exist_ok=True)
    try:
        return _run(args, state, sites)
    except InputError as error:
        print(error, file=sys.stderr)
        return 1


def _run(args: argparse.Namespace, state: Path, sites: tuple[Site, ...]) -> int:
    some = first_texts(_SMALL_TEXTS) if args.small else texts(state)
    planned = plan(sites, some)
    measurements = Measurements(state, sites, planned, args.crawlers)
    if not args.report:
        with _alone(state):
            building.build(state, sites, planned)
            status = 0 if args.build else _measure(args, state, sites, measurements, planned)
        if args.build or args.serve or args.check:
            return status
    publish(result(measurements.records(), planned.digest, (code(), peers_code()), args.before), args)
    return 0


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    """Keep other runs off the web, whose ports and files there are once. Raises InputError if another run has it."""
    with (state / "lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{state} is in use by another run of this benchmark; wait for its end") from None
        yield


def _measure(
    args: argparse.Namespace, state: Path, sites: tuple[Site, ...], measurements: Measurements, planned: Plan
) -> int:
    """Serve the web while it is looked at, checked or crawled."""
    with running(state, building.served(state, sites)):
        if args.serve:
            return _serve(state, sites)
        if args.check:
            browser = Browser(state / "tls/ca.pem", composition.addresses(sites))
            found = [fault for site in sites for fault in faults(browser, site, planned.fills[site.name])]
            print(*found, f"{len(found)} texts are not shown where they should be", sep="\n")
            return 1 if found else 0
        measurements.whole(args.requests, args.delay, args.seed)
        if args.by_software:
            only = [name for name in args.only.split(",") if name]
            measurements.by_software(args.own_requests, args.seed_sets, args.jobs, only)
    return 0


def _serve(state: Path, sites: tuple[Site, ...]) -> int:
    hosts = state / "hosts"
    hosts.write_text("".join(f"{address} {name}\n" for name, address in composition.addresses(sites).items()))
    print(f"{len(sites)} sites; DNS_HOSTS={hosts} SSL_CERT_FILE={state / 'tls/ca.pem'}", flush=True)
    with suppress(KeyboardInterrupt):
        signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Building the web: each site once, in a folder of its own, for one composition."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from benchmarks.websoftware.composition import addresses
from benchmarks.websoftware.planning import Plan, software
from benchmarks.websoftware.running import Processes, mariadb, places
from benchmarks.websoftware.site import Site
from benchmarks.websoftware.tls import certificates
from benchmarks.websoftware.web_servers import PROGRAMS, Served
from crawl4llm.base.errors import InputError

_BUILT = "built"
NODE = {"node": "nodejs", "npm": "npm"}
"""Programs of Node.js, and their packages in Debian."""
DEBIAN = (
    *("mediawiki", "dokuwiki", "wordpress", "wordpress-theme-twentytwentyone", "wordpress-theme-twentytwentytwo"),
    *("wordpress-theme-twentytwentythree", "gitweb", "cgit", "fcgiwrap", "mhonarc", "public-inbox", "hugo", "jekyll"),
    *("jekyll-theme-minima", "ruby-jekyll-feed", "ruby-jekyll-seo-tag", "ruby-jekyll-sitemap", "ikiwiki"),
    *("nginx-light", "apache2", "lighttpd", "lighttpd-mod-openssl", "caddy", "mariadb-server", "php8.2-fpm"),
    *("php8.2-cli", "php8.2-sqlite3"),
    *("php8.2-mysql", "php8.2-intl", "php8.2-mbstring", "php8.2-xml", "php8.2-gd", "php8.2-curl"),
    *("dict-freedict-eng-deu", "dict-freedict-eng-fra", "git", *NODE.values()),
)
"""Packages of Debian 12 that the whole web is made of."""


def lacking(sites: Sequence[Site]) -> list[str]:
    """Return what is not there of what sites need."""
    files = {need for site in sites for need in software(site).NEEDS if not Path(need).exists()}
    programs = {PROGRAMS[site.server] for site in sites if not shutil.which(PROGRAMS[site.server], path=_path())}
    return sorted(files | programs)


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


def build(state: Path, sites: Sequence[Site], planned: Plan) -> None:
    """Build what is not built yet of the sites. Raises InputError if packages are missing."""
    if missing := lacking(sites):
        raise InputError(f"the web needs {', '.join(missing[:6])}; install Debian's packages: {' '.join(DEBIAN)}")
    names = list(addresses())
    certificates(state / "tls", names)
    wanted = [site for site in sites if not _is_built(state, site, planned)]
    processes = Processes(places(state).logs)
    try:
        with mariadb(state, processes) if any(site.software == "wordpress" for site in wanted) else nullcontext():
            for site in wanted:
                _build_site(state, site, planned)
    finally:
        processes.stop()
    composition = {"digest": planned.digest, "sites": [site.name for site in sites], "texts": planned.table()}
    (state / "composition.json").write_text(json.dumps(composition, indent=0))


def _is_built(state: Path, site: Site, planned: Plan) -> bool:
    """Tell whether a site was built as it is planned."""
    built = state / "sites" / site.name / _BUILT
    return built.exists() and built.read_text() == planned.digests[site.name]


def _build_site(state: Path, site: Site, planned: Plan) -> None:
    """Build a site anew."""
    place = state / "sites" / site.name
    began = time.monotonic()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    software(site).build(site, place, planned.fills[site.name])
    (place / _BUILT).write_text(planned.digests[site.name])
    print(
        f"built {site.name}: {site.software}, {site.good + site.low} texts, {time.monotonic() - began:.0f} s",
        flush=True,
    )


def served(state: Path, sites: Sequence[Site]) -> list[Served]:
    """Return sites as the web servers serve them."""
    where = addresses(sites)
    return [
        Served(
            site, {name: where[name] for name in site.names}, software(site).backend(site, state / "sites" / site.name)
        )
        for site in sites
    ]

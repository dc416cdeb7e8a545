"""DokuWiki as Debian has it, filled by its files of pages.

Options: ``urls`` is ``query`` (/doku.php?id=space:page, its default) or ``path`` (/space/page, its userewrite);
``sessions`` has PHP put its session into links, as it does for visitors without cookies if ``session.use_trans_sid`` is
on.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from benchmarks.websoftware.markup import DOKUWIKI
from benchmarks.websoftware.site import Backend, Fill, Link, Shown, Site
from benchmarks.websoftware.software._common import day, run, slug, split, titles
from benchmarks.websoftware.texts import Text

_CODE, _SETTINGS = Path("/usr/share/dokuwiki"), Path("/etc/dokuwiki")
NEEDS = [str(_CODE / "doku.php"), "/usr/bin/php8.2", "/usr/sbin/php-fpm8.2"]
_FOLDERS = (*("attic", "cache", "index", "locks", "media", "media_attic", "media_meta", "meta", "pages", "tmp", "log"),)
_OUTSIDE = {"feed.php": "feed", "lib": "asset", "_media": "media", "_detail": "media", "_export": "export"}


def _ids(texts: Sequence[Text]) -> list[str]:
    return [
        f"{slug(text.topic.split('.')[0], '_')}:{slug(title, '_')}"
        for text, title in zip(texts, titles(texts), strict=True)
    ]


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the pages."""
    return [_path(site, key) for key in _ids(texts)]


def _path(site: Site, key: str) -> str:
    return f"/doku.php?id={key}" if site.options["urls"] == "query" else f"/{key.replace(':', '/')}"


def _key(path: str) -> str:
    return path.removeprefix("/doku.php?id=").lstrip("/").replace("/", ":")


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Copy the code, and write settings and pages."""
    shutil.copytree(_CODE, place / "www", ignore_dangling_symlinks=True, dirs_exist_ok=True)
    shutil.copytree(_SETTINGS, place / "conf", dirs_exist_ok=True)
    (place / "www/inc/preload.php").write_text(
        f"<?php if (!defined('DOKU_CONF')) {{ define('DOKU_CONF', '{place}/conf/');"
        f" define('DOKU_MAIN_CONF', '{place}/conf/'); }}\n"
    )
    rewriting = "$conf['userewrite'] = 1; $conf['useslash'] = 1;" if site.options["urls"] == "path" else ""
    (place / "conf/local.php").write_text(
        f"<?php\n$conf['title'] = '{site.options['title']}'; $conf['savedir'] = '{place}/data';\n"
        f"$conf['useacl'] = 1; $conf['superuser'] = '@admin'; {rewriting}\n"
    )
    (place / "conf/acl.auth.php").write_text("# <?php exit()?>\n*\t@ALL\t8\n")
    for folder in _FOLDERS:
        (place / "data" / folder).mkdir(parents=True, exist_ok=True)
    for number, fill in enumerate(fills):
        here = [Link(link.title, _key(link.url)) for link in fill.related]
        written = DOKUWIKI.whole(fill._replace(related=here))
        _write_page(place, _key(fill.path), f"====== {fill.title} ======\n\n{written}", day(number, len(fills)))
    listed = "\n".join(f"  * [[{_key(fill.path)}|{fill.title}]]" for fill in fills[:25])
    _write_page(
        place, "start", f"====== {site.options['title']} ======\n\n{listed}\n\nSee the [[?do=index|site map]].\n"
    )
    _write_page(place, "sidebar", "  * [[start]]\n  * [[wiki:syntax]]\n  * [[playground:playground]]\n")
    run(["php", place / "www/bin/indexer.php", "-q"], place)


def _write_page(place: Path, key: str, text: str, date: str = "2012-01-01") -> None:
    """Write a page as old as its date: DokuWiki says noindex and nofollow of pages younger than five days."""
    file = place / "data/pages" / f"{key.replace(':', '/')}.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    seconds = datetime.fromisoformat(f"{date}T12:00:00+00:00").timestamp()
    os.utime(file, (seconds, seconds))


def backend(site: Site, place: Path) -> Backend:
    """Serve the copy."""
    rewrites = []
    if site.options["urls"] == "path":
        rewrites = [
            ("^/_media/(.*)$", "/lib/exe/fetch.php?media=$1"),
            ("^/_detail/(.*)$", "/lib/exe/detail.php?media=$1"),
            ("^/_export/([^/]+)/(.*)$", "/doku.php?do=export_$1&id=$2"),
            ("^/$", "/doku.php"),
            (r"^/((?!lib/|doku\.php|feed\.php|index\.php|robots\.txt|install\.php).+)$", "/doku.php?id=$1"),
        ]
    if not site.options.get("sessions"):
        return Backend(place / "www", "php", rewrites=rewrites)
    # in a pool: a process keeps what PHP_VALUE of a request has set, and would hand it on to other sites
    on = {"session.use_trans_sid": "1", "session.use_only_cookies": "0", "session.use_cookies": "1"}
    return Backend(place / "www", "php", rewrites=rewrites, pool=site.name, settings=on)


def read(site: Site, target: str) -> Shown:
    """Tell a page, a view of one, and what is none."""
    path, query = split(target)
    first = path.strip("/").partition("/")[0]
    if path.startswith("/_export/xhtml/"):
        return Shown(_path(site, path.removeprefix("/_export/xhtml/").replace("/", ":").lower()), "export")
    if first in _OUTSIDE:
        return Shown(None, _OUTSIDE[first])
    key = query.get("id", "")
    if path not in {"/doku.php", "/", "/index.php"}:
        key = key or path.removeprefix("/doku.php").strip("/")
    key = key.replace("/", ":").strip(":").lower()
    shown = _path(site, key)
    do = query.get("do", "show")
    if do == "export_xhtml":
        return Shown(shown, "do=export_xhtml")
    if do not in {"show", ""}:
        return Shown(None, f"do={do}")
    if "idx" in query:
        return Shown(None, "idx=")
    if not key or key == "start":
        return Shown(None, "front page")
    if "rev" in query:
        return Shown(shown, "rev=")
    if "DokuWiki" in query or "PHPSESSID" in query:
        return Shown(shown, "session id")
    canonical = set(query) <= ({"id"} if site.options["urls"] == "query" else set())
    return Shown(shown, "page" if canonical else "other URL of a page")

"""WordPress as Debian has it, with MariaDB, filled by wp_insert_post() and wp_insert_comment().

Options: ``permalinks`` is ``date`` (/%year%/%monthnum%/%postname%/), ``plain`` (/?p=ID) or ``archives``
(/archives/ID); ``theme`` is one of Debian's. Comments are threaded, as is WordPress's default, the sidebar has its
default widgets and a calendar.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import HTML
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software._common import day, run, slug, split, titles
from benchmarks.websoftware.texts import Text

_CODE = Path("/usr/share/wordpress")
_THEMES = Path("/usr/share/wordpress/wp-content/themes")
NEEDS = [
    *("/usr/share/wordpress/wp-load.php", "/usr/bin/php8.2", "/usr/sbin/php-fpm8.2", "/usr/sbin/mariadbd"),
    *(str(_THEMES / name) for name in ("twentytwentyone", "twentytwentytwo", "twentytwentythree")),
]
_FIRST = 101
"""ID of the first post."""
_REPLIES = (
    *("Thank you, this helped me a lot.", "I tried this and it did not work on the older version; any idea?"),
    *("Good point. The second paragraph could be clearer, though.", "Same here!", "See also the earlier post on it."),
    *("We have done it like this for years.", "Does anyone have a longer example?", "Nice write-up."),
)
_STRUCTURES = {"date": "/%year%/%monthnum%/%postname%/", "plain": "", "archives": "/archives/%post_id%"}


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the posts."""
    found = []
    for number, title in enumerate(titles(texts)):
        year, month, _ = day(number, len(texts)).split("-")
        found.append(
            {
                "date": f"/{year}/{month}/{slug(title)}/",
                "plain": f"/?p={_FIRST + number}",
                "archives": f"/archives/{_FIRST + number}",
            }[site.options["permalinks"]]
        )
    return found


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Copy the code, install it, and insert posts and comments."""
    www = place / "www"
    if not www.exists():
        shutil.copytree(_CODE, www, ignore_dangling_symlinks=True)
    (www / "wp-config.php").unlink(missing_ok=True)
    database = f"wp_{site.name}".replace("-", "_")
    at = place.parents[1] / "run/mariadb.sock"
    client = ["mariadb", "--no-defaults", f"--socket={at}", "--user=root", "-e"]
    run([*client, f"DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database} CHARACTER SET utf8mb4"], place)
    constants = {"DB_NAME": database, "DB_USER": "root", "DB_PASSWORD": "", "DB_HOST": f"localhost:{at}"}
    constants |= {"WP_HOME": site.url, "WP_SITEURL": site.url, "WP_CONTENT_DIR": f"{www}/wp-content"}
    constants |= {
        f"{kind}_{name}": f"{kind}{name}38" for kind in ("AUTH", "LOGGED_IN", "NONCE") for name in ("KEY", "SALT")
    }
    lines = [f"define({name!r}, {value!r});" for name, value in constants.items()]
    lines += [
        f"define({name!r}, true);"
        for name in ("DISABLE_WP_CRON", "WP_HTTP_BLOCK_EXTERNAL", "AUTOMATIC_UPDATER_DISABLED")
    ]
    lines += ["$table_prefix = 'wp_';", f"if (!defined('ABSPATH')) define('ABSPATH', '{www}/');"]
    lines += ["require_once ABSPATH . 'wp-settings.php';"]
    (www / "wp-config.php").write_text("<?php\n" + "\n".join(lines) + "\n")
    (place / "posts.json").write_text(json.dumps(_content(site, fills)))
    run(["php", "-d", "memory_limit=1G", Path(__file__).with_suffix(".php"), www, place / "posts.json"], place)
    (place / "posts.json").unlink()
    # another process, as the rules of tags and categories are made when WordPress starts with its permalinks
    host = f"$_SERVER['HTTP_HOST'] = '{site.host}';"
    run(["php", "-r", f"{host} require '{www}/wp-load.php'; flush_rewrite_rules(false);"], place)


def _content(site: Site, fills: Sequence[Fill]) -> dict[str, object]:
    posts = []
    for number, fill in enumerate(fills):
        replies = [_REPLIES[(number + 3 * reply) % len(_REPLIES)] for reply in range(number % 5)]
        posts.append(
            {
                "id": _FIRST + number,
                "title": fill.title,
                "slug": slug(fill.title),
                "date": f"{day(number, len(fills))} 09:30:00",
                "category": fill.text.topic.split(".")[0].capitalize(),
                "tags": sorted({word for word in fill.title.lower().split() if len(word) > 4})[:3],
                "author": number % 4,
                "content": HTML.whole(fill),
                "replies": replies,
            }
        )
    blogroll = [link for fill in fills[:12] for link in fill.abroad][:6]
    return {
        "title": site.options["title"],
        "permalinks": _STRUCTURES[site.options["permalinks"]],
        "theme": site.options["theme"],
        "posts": posts,
        "links": [list(link) for link in blogroll],
    }


def backend(site: Site, place: Path) -> Backend:
    """Serve the copy; what is no file goes to its index.php."""
    return Backend(place / "www", "php", front="/index.php")


def read(site: Site, target: str) -> Shown:
    """Tell a post, a view of one, and what is none."""
    path, query = split(target)
    for begins, kind in (("/wp-login", "login"), ("/wp-json", "api"), ("/wp-", "asset"), ("/xmlrpc", "api")):
        if path.startswith(begins):
            return Shown(None, kind)
    if "feed" in query or re.search(r"/feed/?($|atom|rss)|/comments/feed", path):
        return Shown(None, "feed")
    if "/embed" in path or "embed" in query:
        return Shown(None, "embed")
    shown = _post(site, path, query)
    if shown is None:
        return Shown(None, _listing(path, query))
    if "replytocom" in query:
        return Shown(shown, "replytocom")
    canonical = set(query) <= {"p"} and (path == shown or "p" in query)
    return Shown(shown, "page" if canonical else "other URL of a page")


def _post(site: Site, path: str, query: dict[str, str]) -> str | None:
    """Return the canonical path of the post that a URL is one of."""
    kind = site.options["permalinks"]
    if kind == "plain":
        return f"/?p={query['p']}" if "p" in query and path in {"/", "/index.php"} else None
    shape = (
        r"/archives/\d+"
        if kind == "archives"
        else r"/\d{4}/\d\d/[a-z][^/]*|/\d{4}/\d\d/\d+-[^/]*|/\d{4}/\d\d/\d{3,}[^/]*"
    )
    found = re.match(shape, path)
    return (found[0] if kind == "archives" else f"{found[0]}/") if found else None


def _listing(path: str, query: dict[str, str]) -> str:
    if "s" in query:
        return "search"
    if path.startswith("/wp-sitemap") or "sitemap" in query:
        return "sitemap"
    for name in ("category", "tag", "author"):
        if f"/{name}/" in path or name in query or {"category": "cat", "tag": "tag", "author": "author"}[name] in query:
            return name
    if (
        re.match(r"/\d{4}(/|$)", path)
        or {"m", "year", "monthnum", "day"} & set(query)
        or re.match(r"/archives/date", path)
    ):
        return "calendar and dates"
    if "/page/" in path or "paged" in query:
        return "page of a list"
    return "front page" if path in {"/", "/index.php"} and not query else "other"

"""MediaWiki as Debian has it, with SQLite, filled by its own importTextFiles.php.

Options: ``urls`` is ``info`` (/index.php/Title, the default of its installer), ``short`` (/wiki/Title) or ``query``
(/index.php?title=Title); ``private`` makes a wiki that only members read; ``robots`` is its robots.txt.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import MEDIAWIKI
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software._common import run, split, titles
from benchmarks.websoftware.texts import Text

_CODE = Path("/usr/share/mediawiki")
NEEDS = [str(_CODE / "index.php"), "/usr/bin/php8.2", "/usr/sbin/php-fpm8.2", "/usr/sbin/mariadbd"]
_SPACES = {"talk": "talk page", "user": "user page", "category": "category", "special": "special page", "file": "file"}
_ON_MAIN = 25


def _prefix(site: Site) -> str:
    return {"info": "/index.php/", "short": "/wiki/", "query": "/index.php?title="}[site.options["urls"]]


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the articles."""
    return [_prefix(site) + title.replace(" ", "_") for title in titles(texts)]


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Install a wiki and import its articles."""
    data, pages = place / "data", place / "pages"
    for folder in (data, pages, place / "cache", place / "www"):
        folder.mkdir(parents=True, exist_ok=True)
    name = site.options["title"]
    install: list[str | Path] = [
        "php",
        _CODE / "maintenance/install.php",
        "--dbtype=sqlite",
        f"--dbpath={data}",
        f"--server={site.url}",
    ]
    install += ["--scriptpath=", "--pass=correct horse 38", f"--confpath={place}", "--dbname=wiki", name, "Admin"]
    run(install, place)
    _configure(site, place)
    for fill in fills:
        text = f"{MEDIAWIKI.whole(fill)}\n[[Category:{fill.text.topic.split('.')[0].capitalize()}]]\n"
        (pages / f"{fill.title}.txt").write_text(text, encoding="utf-8")
    front = "\n".join(f"* [[{fill.title}]]" for fill in fills[:_ON_MAIN])
    others = "\n".join(f"* [{link.url} {link.title}]" for fill in fills[:8] for link in fill.abroad)
    introduction = f"Welcome to '''{name}'''. See [[Special:AllPages|all pages]] and [[Special:Categories|categories]]."
    (pages / "Main Page.txt").write_text(f"{introduction}\n\n{front}\n\n== Other sites ==\n{others}\n")
    environment = {"MW_CONFIG_FILE": str(place / "LocalSettings.php")}
    names = sorted(str(file) for file in pages.iterdir())
    script: list[str | Path] = ["php", _CODE / "maintenance/importTextFiles.php", "--overwrite", "--rc", "--user=Admin"]
    for first in range(0, len(names), 500):
        run([*script, *names[first : first + 500]], place, environment)
    run(["php", _CODE / "maintenance/runJobs.php"], place, environment)
    run(["php", _CODE / "maintenance/updateSpecialPages.php"], place, environment)
    run(["php", _CODE / "maintenance/initSiteStats.php", "--update"], place, environment)
    shutil.rmtree(pages)


def _configure(site: Site, place: Path) -> None:
    """Add to what the installer wrote."""
    lines = ["$wgCacheDirectory = __DIR__ . '/cache';", "$wgEnableEmail = false;", "$wgPingback = false;"]
    if site.options["urls"] == "info":
        lines.append("$wgUsePathInfo = true;")  # as its installer finds by itself, where PHP is a module of Apache
    if site.options["urls"] == "short":
        lines.append('$wgArticlePath = "/wiki/$1";')
    if site.options["urls"] == "query":
        lines.append("$wgUsePathInfo = false; $wgArticlePath = '/index.php?title=$1';")
    if site.options.get("private"):
        lines.append("$wgGroupPermissions['*']['read'] = false; $wgGroupPermissions['*']['edit'] = false;")
    with (place / "LocalSettings.php").open("a") as file:
        file.write("\n" + "\n".join(lines) + "\n")
    if robots := site.options.get("robots"):
        (place / "robots.txt").write_text(robots)


def backend(site: Site, place: Path) -> Backend:
    """Serve the code of the package with the settings of the site."""
    rewrites = [("^/wiki/.*$", "/index.php"), ("^/$", "/index.php")] if site.options["urls"] == "short" else []
    return Backend(
        _CODE,
        "php",
        variables={"MW_CONFIG_FILE": str(place / "LocalSettings.php")},
        rewrites=rewrites,
        files={"/robots.txt": place / "robots.txt"} if site.options.get("robots") else {},
    )


def read(site: Site, target: str) -> Shown:
    """Tell an article, a view of one, and what is none."""
    path, query = split(target)
    title = query.get("title", "")
    for prefix in ("/index.php/", "/wiki/"):
        if path.startswith(prefix):
            title = title or path.removeprefix(prefix)
    title = title.replace(" ", "_")
    if not title:
        return Shown(None, "front page" if path in {"/", "/index.php"} else "other")
    action = query.get("action", "view")
    shown = _prefix(site) + title
    if action != "view":
        return Shown(shown if action == "render" else None, f"action={action}")
    if ":" in title:
        space = title.partition(":")[0].lower()
        return Shown(None, _SPACES.get("talk" if space.endswith("talk") else space, "other"))
    for parameter in ("diff", "oldid", "printable", "mobileaction", "veaction"):
        if parameter in query:
            return Shown(None if parameter == "veaction" else shown, parameter)
    canonical = set(query) <= ({"title"} if site.options["urls"] == "query" else set())
    return Shown(shown, "page" if canonical else "other URL of a page")

"""gitweb of Debian, by fcgiwrap: repositories whose files are the texts, a few of them written in two commits.

Options: ``cgi`` is ``gitweb`` or ``cgit``; both show the same kind of repositories.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import PLAIN
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software._common import run, slug, split, titles
from benchmarks.websoftware.texts import Text

_GITWEB, _CGIT = Path("/usr/share/gitweb"), Path("/usr/lib/cgit")
NEEDS = [str(_GITWEB / "gitweb.cgi"), "/usr/sbin/fcgiwrap", "/usr/bin/git"]
_NAMES = "-c", "user.name=Nobody", "-c", "user.email=nobody@example.org"
_COMMITS = 8
"""Files of one commit."""


def _files(texts: Sequence[Text]) -> list[tuple[str, str]]:
    """Return repository and file of each text."""
    return [
        (slug(text.topic.split(".")[0]), f"docs/{slug(title)}.txt")
        for text, title in zip(texts, titles(texts), strict=True)
    ]


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the files as they are now."""
    return [_path(site, repository, file) for repository, file in _files(texts)]


def _path(site: Site, repository: str, file: str) -> str:
    if site.options["cgi"] == "cgit":
        return f"/{repository}/tree/{file}"
    return f"/?p={repository}.git;a=blob;f={file};hb=HEAD"


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Make the repositories, and the settings of gitweb or cgit."""
    repositories: dict[str, list[tuple[str, Fill]]] = {}
    for (repository, file), fill in zip(_files([fill.text for fill in fills]), fills, strict=True):
        repositories.setdefault(repository, []).append((file, fill))
    for name, files in repositories.items():
        _make(place, name, files)
    if site.options["cgi"] == "gitweb":
        settings = f'$projectroot = "{place}/git";\n$projects_list = "";\n$site_name = "{site.options["title"]}";\n'
        settings += '$feature{"blame"}{"default"} = [1];\n$home_text = "";\n'
        (place / "gitweb.conf").write_text(settings + "1;\n")
    else:
        lines = ["virtual-root=/", "css=/cgit-css/cgit.css", "logo=/cgit-css/cgit.png", "enable-commit-graph=1"]
        lines += [f"root-title={site.options['title']}", "enable-blame=1", "snapshots=tar.gz", "enable-index-links=1"]
        for name in repositories:
            lines += [f"\nrepo.url={name}", f"repo.path={place}/git/{name}.git", f"repo.desc=Documents of {name}"]
        (place / "cgitrc").write_text("\n".join(lines) + "\n")


def _make(place: Path, name: str, files: Sequence[tuple[str, Fill]]) -> None:
    """Make a bare repository with its files in commits of a few."""
    work, bare = place / "work" / name, place / "git" / f"{name}.git"
    (work / "docs").mkdir(parents=True)
    run(["git", "init", "--quiet", "-b", "main"], work)
    (work / "README").write_text(f"Documents of {name}.\n\n" + "".join(f"  {file}\n" for file, _ in files))
    for first in range(0, len(files), _COMMITS):
        some = files[first : first + _COMMITS]
        for file, fill in some:
            (work / file).write_text(f"{fill.title}\n{'=' * len(fill.title)}\n\n{PLAIN.whole(fill)}", encoding="utf-8")
        date = {"GIT_AUTHOR_DATE": f"{1500000000 + 86400 * first} +0000"}
        date["GIT_COMMITTER_DATE"] = date["GIT_AUTHOR_DATE"]
        run(["git", "add", "-A"], work)
        run(
            ["git", *_NAMES, "commit", "--quiet", "-m", f"Add {', '.join(fill.title for _, fill in some[:3])}"],
            work,
            date,
        )
    run(["git", "tag", "v1.0"], work)
    run(["git", "clone", "--quiet", "--bare", work, bare], place)
    (bare / "description").write_text(f"Documents of {name}\n")


def backend(site: Site, place: Path) -> Backend:
    """Serve the script of the package."""
    if site.options["cgi"] == "gitweb":
        variables = {"GITWEB_CONFIG": str(place / "gitweb.conf")}
        return Backend(_GITWEB, "cgi", "gitweb.cgi", variables=variables, aliases={"/static/": _GITWEB / "static"})
    variables = {"CGIT_CONFIG": str(place / "cgitrc")}
    return Backend(_CGIT, "cgi", "cgit.cgi", variables=variables, aliases={"/cgit-css/": Path("/usr/share/cgit")})


def read(site: Site, target: str) -> Shown:
    """Tell a file, a view of one, and what is none."""
    path, query = split(target)
    if site.options["cgi"] == "cgit":
        return _read_cgit(site, path, query)
    if path.startswith("/static"):
        return Shown(None, "asset")
    repository, action = query.get("p", ""), query.get("a", "summary")
    if not repository:
        return Shown(None, "front page" if "a" not in query else f"a={action}")
    if "f" in query and action in {"blob", "blame"}:
        shown = _path(site, repository.removesuffix(".git"), query["f"])
        canonical = action == "blob" and query.get("hb") == "HEAD" and "h" not in query
        return Shown(shown, "page" if canonical else f"a={action} of a commit")
    return Shown(None, f"a={action}")


def _read_cgit(site: Site, path: str, query: dict[str, str]) -> Shown:
    if path.startswith("/cgit-css"):
        return Shown(None, "asset")
    repository, _, rest = path.strip("/").partition("/")
    view, _, file = rest.partition("/")
    if not view:
        return Shown(None, "front page" if not repository else "summary")
    if view in {"tree", "blame"} and re.search(r"\.\w+$", file):
        return Shown(_path(site, repository, file), "page" if view == "tree" and not query else f"{view} of a commit")
    return Shown(None, view)

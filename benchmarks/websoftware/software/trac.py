"""Trac of the package index with SQLite: wiki pages and tickets, filled by its own Python API.

Its permissions are its defaults: anonymous visitors read wiki, tickets, timeline, roadmap, reports and search. The web
server asks for a password at /login, as its manual says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import TRAC
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software import _python
from benchmarks.websoftware.software._common import run, split, titles
from benchmarks.websoftware.texts import Text

NEEDS: Sequence[str] = ()
PACKAGES = ("setuptools<80", "trac==1.6", "gunicorn==27.0.1")
_ADMIN = "from trac.admin.console import run; run()"
_WSGI = """
import os
from trac.web.main import dispatch_request
os.environ["TRAC_ENV"] = {environment!r}
def application(environ, start_response):
    environ["trac.env_path"] = {environment!r}
    environ["wsgi.url_scheme"] = "https"
    return dispatch_request(environ, start_response)
"""


def _is_ticket(number: int) -> bool:
    return number % 7 < 4


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of wiki pages and tickets."""
    found, tickets = [], 0
    for number, title in enumerate(titles(texts)):
        tickets += _is_ticket(number)
        page = "".join(word[:1].upper() + word[1:] for word in title.split())
        found.append(f"/ticket/{tickets}" if _is_ticket(number) else f"/wiki/{page}")
    return found


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Make an environment, and fill it."""
    python = _python.environment(place, "trac", PACKAGES)
    environment = place / "env"
    if not (environment / "VERSION").exists():
        run([python, "-c", _ADMIN, environment, "initenv", site.options["title"], "sqlite:db/trac.db"], place)
        for setting in (["trac", "base_url", site.url], ["trac", "use_base_url_for_redirect", "enabled"]):
            run([python, "-c", _ADMIN, environment, "config", "set", *setting], place)
    content = [
        {
            "title": fill.title,
            "path": fill.path,
            "component": "component" + str(1 + len(fill.text.topic) % 2),
            "text": TRAC.whole(fill),
            "comments": number % 3,
        }
        for number, fill in enumerate(fills)
    ]
    (place / "content.json").write_text(json.dumps({"environment": str(environment), "pages": content}))
    _python.fill(python, "trac_project.py", place, {})
    (place / "tracker_wsgi.py").write_text(_WSGI.format(environment=str(environment)))


def backend(site: Site, place: Path) -> Backend:
    """Serve it by gunicorn behind the web server."""
    socket = site.options["socket"]
    command = _python.gunicorn(_python.python_of(place, "trac"), "tracker_wsgi", socket, place)
    return Backend(place, "proxy", socket=socket, commands=[command], secured=("/login",))


def read(site: Site, target: str) -> Shown:
    """Tell a page or ticket, a view of one, and what is none."""
    path, query = split(target)
    if re.match(r"/(wiki|ticket)/.", path):
        if action := query.get("action"):
            return Shown(None, f"action={action}")
        if "format" in query:
            return Shown(None, "format=")
        return Shown(path.rstrip("/"), "page" if not query else f"{min(query)}=")
    first = path.strip("/").partition("/")[0]
    kinds = {"timeline": "timeline", "query": "query", "report": "report", "search": "search", "chrome": "asset"}
    kinds |= {"raw-attachment": "raw", "login": "login", "milestone": "milestone", "roadmap": "milestone"}
    return Shown(None, kinds.get(first, "front page" if path in {"/", "/wiki"} else "other"))

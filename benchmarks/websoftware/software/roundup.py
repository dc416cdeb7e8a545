"""Roundup of the package index, its classic template with SQLite: issues with messages, by its own Python API."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import PLAIN
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software import _python
from benchmarks.websoftware.software._common import run, split
from benchmarks.websoftware.texts import Text

NEEDS: Sequence[str] = ()
PACKAGES = ("roundup==2.6.0", "gunicorn==27.0.1")
_REPLIES = 4
"""More than any issue has."""
_ADMIN = "from roundup.scripts.roundup_admin import run; run()"
_WSGI = """
from roundup.cgi.wsgi_handler import RequestDispatcher
application = RequestDispatcher({tracker!r})
"""


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the issues."""
    return [f"/issue{number + 1}" for number in range(len(texts))]


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Make a tracker, and fill it."""
    python = _python.environment(place, "roundup", PACKAGES)
    tracker = place / "tracker"
    run([python, "-c", _ADMIN, "-i", tracker, "install", "classic", "anydbm", f"TRACKER_WEB={site.url}/"], place)
    settings = (tracker / "config.ini").read_text()
    for pattern, value in (
        (r"^\[tracker\]\n", f"[tracker]\nweb = {site.url}/\nname = {site.options['title']}\n"),
        (r"^\[rdbms\]\n", "[rdbms]\nbackend = sqlite\n"),
        (r"^\[mail\]\n", "[mail]\ndomain = example.org\nhost = localhost\n"),
    ):
        name = value.split("\n")[0]
        keys = [line.partition(" =")[0] for line in value.split("\n")[1:-1]]
        for key in keys:
            settings = _without(settings, name, key)
        settings = re.sub(pattern, value, settings, count=1, flags=re.MULTILINE)
    (tracker / "config.ini").write_text(settings)
    (tracker / "detectors/nosyreaction.py").unlink()  # it would send mail
    run([python, "-c", _ADMIN, "-i", tracker, "initialise", "correct-horse-38"], place)
    content = [
        {
            "title": fill.title,
            "text": PLAIN.whole(fill),
            "keyword": fill.text.topic.split(".")[0],
            "replies": number % _REPLIES,
        }
        for number, fill in enumerate(fills)
    ]
    (place / "content.json").write_text(json.dumps({"tracker": str(tracker), "issues": content}))
    _python.fill(python, "roundup_tracker.py", place, {})
    (place / "tracker_wsgi.py").write_text(_WSGI.format(tracker=str(tracker)))


def _without(settings: str, section: str, key: str) -> str:
    """Return an INI file without a key of a section."""
    head, mark, rest = settings.partition(f"\n{section}\n")
    body, following, tail = rest.partition("\n[")
    return head + mark + re.sub(rf"^#?{key} *=.*\n(?:[ \t]+\S.*\n)*", "", body, flags=re.MULTILINE) + following + tail


def backend(site: Site, place: Path) -> Backend:
    """Serve it by gunicorn behind the web server."""
    socket = site.options["socket"]
    command = _python.gunicorn(_python.python_of(place, "roundup"), "tracker_wsgi", socket, place)
    return Backend(place, "proxy", socket=socket, commands=[command])


def _issue(message: int) -> str | None:
    """Return the path of the issue whose text a message is; None for a reply.

    Issues have 0, 1, 2, 3, 0 ... replies, and their messages are numbered in turn.
    """
    turn, place = divmod(message - 1, sum(1 + replies for replies in range(_REPLIES)))
    firsts = [sum(1 + replies for replies in range(number)) for number in range(_REPLIES)]
    return f"/issue{_REPLIES * turn + firsts.index(place) + 1}" if place in firsts else None


def read(site: Site, target: str) -> Shown:
    """Tell an issue or message, a view of one, and what is none."""
    path, query = split(target)
    if found := re.fullmatch(r"/issue(\d+)", path):
        extra = sorted(key for key in query if not key.startswith("@ok_message"))
        return Shown(path, "page" if not extra else f"{extra[0]}=")
    if found := re.fullmatch(r"/msg(\d+)(/.*)?", path):
        return Shown(_issue(int(found[1])), "message page") if not found[2] else Shown(None, "raw")
    for begins, kind in (
        *((r"/issue", "query" if query else "list of issues"), (r"/user", "user page"), (r"/@@file", "asset")),
        *((r"/(keyword|query|file)", "other"), (r"/_generic|/help", "help")),
    ):
        if re.match(begins, path):
            return Shown(None, kind)
    return Shown(None, ("front page" if not query else "query") if path in {"/", "/home"} else "other")

"""Spirit, a forum of the package index, as its own project template sets it up, with SQLite."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import MARKDOWN
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software import _python
from benchmarks.websoftware.software._common import run, split
from benchmarks.websoftware.texts import Text

NEEDS: Sequence[str] = ()
PACKAGES = ("setuptools<80", "django-spirit==0.14.3", "Django==5.2.19", "gunicorn==27.0.1")
_SETTINGS = """
from .base import *
SECRET_KEY = "of a test web"
DEBUG = False
ALLOWED_HOSTS = ["*"]
ST_SITE_URL = "{url}/"
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(BASE_DIR, "db.sqlite3")}}}}
HAYSTACK_CONNECTIONS = {{"default": {{"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}}}}
HAYSTACK_SIGNAL_PROCESSOR = "haystack.signals.BaseSignalProcessor"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
ST_TASK_MANAGER = None
"""


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the topics; each redirects to one with the title in it."""
    return [f"/topic/{number + 1}/" for number in range(len(texts))]


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Make a project, and fill it."""
    python = _python.environment(place, "spirit", PACKAGES)
    if not (place / "forum").exists():
        path = f"{python.parent}:{os.environ['PATH']}"
        run([python, "-m", "spirit.extra.bin.spirit", "startproject", "forum"], place, {"PATH": path})
    project = place / "forum"
    (project / "forum/settings/web.py").write_text(_SETTINGS.format(url=site.url))
    variables = {"DJANGO_SETTINGS_MODULE": "forum.settings.web"}
    (project / "db.sqlite3").unlink(missing_ok=True)
    for step in (["spiritinstall"], ["collectstatic", "--no-input"]):
        run([python, "manage.py", *step], project, variables)
    content = [
        {
            "title": fill.title,
            "forum": fill.text.topic.split(".")[0].capitalize(),
            "text": MARKDOWN.whole(fill),
            "replies": number % 5,
        }
        for number, fill in enumerate(fills)
    ]
    (project / "content.json").write_text(json.dumps({"title": site.options["title"], "topics": content}))
    _python.fill(python, "spirit_forum.py", project, variables)


def backend(site: Site, place: Path) -> Backend:
    """Serve it by gunicorn behind the web server."""
    python, socket = _python.python_of(place, "spirit"), site.options["socket"]
    return _python.served(
        python, place / "forum", socket, "forum.wsgi", {"DJANGO_SETTINGS_MODULE": "forum.settings.web"}
    )


def read(site: Site, target: str) -> Shown:
    """Tell a topic, a view of one, and what is none."""
    path, query = split(target)
    if found := re.fullmatch(r"/topic/(\d+)/(?:[\w-]+/)?", path):
        extra = query.keys()
        return Shown(f"/topic/{found[1]}/", "page" if not extra else f"{min(extra)}=")
    for begins, kind in (
        *(("/user/login", "login"), ("/user/register", "login"), ("/user/", "user page"), ("/category/", "category")),
        *(("/comment/", "post action"), ("/topic/", "list of topics"), ("/search", "search"), ("/static", "asset")),
    ):
        if path.startswith(begins):
            return Shown(None, kind)
    return Shown(None, "front page" if path == "/" else "other")

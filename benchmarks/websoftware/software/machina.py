"""django-machina, a forum of the package index, in a project as its manual says, with SQLite."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import MARKDOWN
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software import _python
from benchmarks.websoftware.software._common import run, slug, split, titles
from benchmarks.websoftware.texts import Text

NEEDS: Sequence[str] = ()
PACKAGES = ("setuptools<80", "django-machina==1.3.1", "Django==5.2.19", "gunicorn==27.0.1")
_SETTINGS = """
from pathlib import Path
from machina import MACHINA_MAIN_STATIC_DIR, MACHINA_MAIN_TEMPLATE_DIR
BASE = Path(__file__).parent
SECRET_KEY = "of a test web"
DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "board_urls"
USE_TZ = True
STATIC_URL = "/static/"
STATIC_ROOT = BASE / "static"
MEDIA_ROOT = BASE / "media"
MEDIA_URL = "/media/"
STATICFILES_DIRS = [MACHINA_MAIN_STATIC_DIR]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
LOGIN_URL = "/accounts/login/"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
INSTALLED_APPS = ["django.contrib." + name for name in
                  ("admin", "auth", "contenttypes", "sessions", "messages", "sites", "staticfiles", "humanize")]
INSTALLED_APPS += ["mptt", "haystack", "widget_tweaks", "machina"]
INSTALLED_APPS += ["machina.apps." + name for name in (
    "forum", "forum_conversation", "forum_conversation.forum_attachments", "forum_conversation.forum_polls",
    "forum_feeds", "forum_moderation", "forum_search", "forum_tracking", "forum_member", "forum_permission")]
SITE_ID = 1
MIDDLEWARE = ["django.middleware.common.CommonMiddleware", "django.contrib.sessions.middleware.SessionMiddleware",
              "django.middleware.csrf.CsrfViewMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware",
              "django.contrib.messages.middleware.MessageMiddleware",
              "machina.apps.forum_permission.middleware.ForumPermissionMiddleware"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "DIRS": [MACHINA_MAIN_TEMPLATE_DIR],
              "OPTIONS": {"context_processors": ["django.template.context_processors.debug",
              "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
              "django.template.context_processors.static", "django.contrib.messages.context_processors.messages",
              "machina.core.context_processors.metadata"],
              "loaders": ["django.template.loaders.filesystem.Loader",
                          "django.template.loaders.app_directories.Loader"]}}]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE / "db.sqlite3"}}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
          "machina_attachments": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
HAYSTACK_CONNECTIONS = {"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}}
MACHINA_DEFAULT_AUTHENTICATED_USER_FORUM_PERMISSIONS = ["can_see_forum", "can_read_forum", "can_start_new_topics",
                                                        "can_reply_to_topics"]
"""
_URLS = """
from django.contrib import admin
from django.urls import include, path
from django.contrib.auth import views
from machina import urls as machina_urls
urlpatterns = [path("admin/", admin.site.urls), path("accounts/login/", views.LoginView.as_view(
    template_name="admin/login.html")), path("", include(machina_urls))]
"""
_WSGI = """
from django.core.wsgi import get_wsgi_application
application = get_wsgi_application()
"""
_VARIABLES = {"DJANGO_SETTINGS_MODULE": "board_settings"}


def _forums(texts: Sequence[Text]) -> dict[str, int]:
    """Return the number of each forum."""
    return {name: number + 1 for number, name in enumerate(sorted({text.topic.split(".")[0] for text in texts}))}


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the topics."""
    forums = _forums(texts)
    return [
        f"/forum/{slug(name)}-{forums[name]}/topic/{slug(title)}-{number + 1}/"
        for number, (title, name) in enumerate(
            zip(titles(texts), (text.topic.split(".")[0] for text in texts), strict=True)
        )
    ]


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Make a project, and fill it."""
    python = _python.environment(place, "machina", PACKAGES)
    for name, text in (("settings", _SETTINGS), ("urls", _URLS), ("wsgi", _WSGI)):
        (place / f"board_{name}.py").write_text(text)
    (place / "db.sqlite3").unlink(missing_ok=True)
    variables = {**_VARIABLES, "PYTHONPATH": str(place)}
    for step in (["migrate"], ["collectstatic", "--no-input"]):
        run([python, "-m", "django", *step], place, variables)
    content = [
        {
            "title": fill.title,
            "forum": fill.text.topic.split(".")[0],
            "text": MARKDOWN.whole(fill),
            "replies": number % 4,
        }
        for number, fill in enumerate(fills)
    ]
    forums = list(_forums([fill.text for fill in fills]))
    (place / "content.json").write_text(json.dumps({"forums": forums, "topics": content}))
    _python.fill(python, "machina_board.py", place, _VARIABLES)


def backend(site: Site, place: Path) -> Backend:
    """Serve it by gunicorn behind the web server."""
    python, socket = _python.python_of(place, "machina"), site.options["socket"]
    return _python.served(python, place, socket, "board_wsgi", _VARIABLES)


def read(site: Site, target: str) -> Shown:
    """Tell a topic, a view of one, and what is none."""
    path, query = split(target)
    if found := re.fullmatch(r"(/forum/[^/]+/topic/[^/]+-\d+/)", path):
        return Shown(found[1], "page" if not query else f"{min(query)}=")
    for begins, kind in (
        *((r"/forum/.*/(create|update|delete)/", "post action"), (r"/forum/[^/]+/$", "category"), ("/feeds", "feed")),
        *(("/accounts", "login"), ("/admin", "login"), ("/member/", "user page"), ("/search", "search")),
        *(("/moderation", "post action"), ("/tracking", "post action"), ("/static", "asset")),
    ):
        if re.match(begins, path):
            return Shown(None, kind)
    return Shown(None, "front page" if path == "/" else "other")

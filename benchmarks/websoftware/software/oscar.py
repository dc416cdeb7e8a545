"""django-oscar, a shop of the package index, in a project as its manual says, with SQLite; products are the texts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import HTML
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software import _python
from benchmarks.websoftware.software._common import run, slug, split, titles
from benchmarks.websoftware.texts import Text

NEEDS: Sequence[str] = ()
PACKAGES = ("setuptools<80", "django-oscar==4.2.1", "Django==5.2.19", "gunicorn==27.0.1", "whoosh==2.7.4")
_SETTINGS = """
from pathlib import Path
from oscar import INSTALLED_APPS
from oscar.defaults import *
BASE = Path(__file__).parent
SECRET_KEY = "of a test web"
DEBUG = False
ALLOWED_HOSTS = ["*"]
SITE_ID = 1
ROOT_URLCONF = "shop_urls"
USE_TZ = True
STATIC_URL = "/static/"
STATIC_ROOT = BASE / "static"
MEDIA_ROOT = BASE / "media"
MEDIA_URL = "/media/"
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
OSCAR_SHOP_NAME = "{title}"
OSCAR_DEFAULT_CURRENCY = "EUR"
MIDDLEWARE = ["django.middleware.security.SecurityMiddleware", "django.contrib.sessions.middleware.SessionMiddleware",
              "django.middleware.csrf.CsrfViewMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware",
              "django.contrib.messages.middleware.MessageMiddleware", "django.middleware.common.CommonMiddleware",
              "oscar.apps.basket.middleware.BasketMiddleware",
              "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware"]
AUTHENTICATION_BACKENDS = ("oscar.apps.customer.auth_backends.EmailBackend",
                           "django.contrib.auth.backends.ModelBackend")
TEMPLATES = [{{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
              "OPTIONS": {{"context_processors": ["django.template.context_processors.debug",
              "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
              "django.template.context_processors.i18n", "django.template.context_processors.media",
              "django.template.context_processors.static", "django.contrib.messages.context_processors.messages",
              "oscar.apps.search.context_processors.search_form", "oscar.apps.checkout.context_processors.checkout",
              "oscar.apps.communication.notifications.context_processors.notifications",
              "oscar.core.context_processors.metadata"]}}}}]
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": BASE / "db.sqlite3",
                           "ATOMIC_REQUESTS": True, "OPTIONS": {{"timeout": 30, "transaction_mode": "IMMEDIATE"}}}}}}
HAYSTACK_CONNECTIONS = {{"default": {{"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}}}}
LANGUAGES = (("en-gb", "English"), ("de", "German"), ("fr", "French"))
LANGUAGE_CODE = "en-gb"
"""
_URLS = """
from django.apps import apps
from django.urls import include, path
urlpatterns = [path("i18n/", include("django.conf.urls.i18n")), path("", include(apps.get_app_config("oscar").urls[0]))]
"""
_WSGI = """
from django.core.wsgi import get_wsgi_application
application = get_wsgi_application()
"""
_VARIABLES = {"DJANGO_SETTINGS_MODULE": "shop_settings"}


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the products."""
    return [f"/catalogue/{slug(title)}_{number + 1}/" for number, title in enumerate(titles(texts))]


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Make a project, and fill it."""
    python = _python.environment(place, "oscar", PACKAGES)
    for name, text in (("settings", _SETTINGS.format(title=site.options["title"])), ("urls", _URLS), ("wsgi", _WSGI)):
        (place / f"shop_{name}.py").write_text(text)
    (place / "db.sqlite3").unlink(missing_ok=True)
    variables = {**_VARIABLES, "PYTHONPATH": str(place)}
    for step in (["migrate"], ["collectstatic", "--no-input"]):
        run([python, "-m", "django", *step], place, variables)
    content = [
        {
            "title": fill.title,
            "slug": slug(fill.title),
            "category": fill.text.topic.split(".")[0],
            "text": HTML.whole(fill),
            "reviews": number % 4,
        }
        for number, fill in enumerate(fills)
    ]
    (place / "content.json").write_text(json.dumps({"products": content}))
    _python.fill(python, "oscar_shop.py", place, _VARIABLES)


def backend(site: Site, place: Path) -> Backend:
    """Serve it by gunicorn behind the web server."""
    python, socket = _python.python_of(place, "oscar"), site.options["socket"]
    return _python.served(python, place, socket, "shop_wsgi", _VARIABLES)


def read(site: Site, target: str) -> Shown:
    """Tell a product, a view of one, and what is none."""
    path, query = split(target)
    if found := re.fullmatch(r"(/catalogue/[\w-]*_\d+/)", path):
        return Shown(found[1], "page" if not query else f"{min(query)}=")
    for begins, kind in (
        *(("/catalogue/.*/reviews/", "reviews"), ("/catalogue/category/", "category"), ("/accounts/login", "login")),
        *(("/accounts", "login"), ("/basket", "basket"), ("/search", "search"), ("/dashboard", "login")),
        *(("/static", "asset"), ("/catalogue/$", "list of products"), ("/checkout", "basket"), ("/offers", "offers")),
    ):
        if re.match(begins, path):
            parameters = {"sort_by", "page", "selected_facets"} & set(query)
            return Shown(None, f"{kind}, {min(parameters)}=" if parameters else kind)
    return Shown(None, "front page" if path == "/" else "other")

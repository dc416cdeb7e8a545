"""Sphinx of the package index: a handbook in three languages by its gettext builder and PO files.

It has the theme of Read the Docs, a menu of languages, and alternates for each page. Translations are word by word.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware import translating
from benchmarks.websoftware.site import Backend, Fill, Link, Shown, Site
from benchmarks.websoftware.software import _python, _static
from benchmarks.websoftware.software._common import run, slug, titles
from benchmarks.websoftware.texts import Text

NEEDS = translating.NEEDS
LANGUAGES = ("en", "de", "fr")
_SETTINGS = """
project = {title!r}
extensions = ["myst_parser", "sphinx.ext.autosectionlabel"]
autosectionlabel_prefix_document = True
suppress_warnings = ["*"]
html_theme = "sphinx_rtd_theme"
html_baseurl = {url!r} + "/" + {{"en": "en", "de": "de", "fr": "fr"}}[globals().get("language") or "en"] + "/"
templates_path = ["_templates"]
locale_dirs = ["locale"]
gettext_compact = False
gettext_uuid = False
html_context = {{"languages": {languages!r}, "site_url": {url!r}}}
"""
_LAYOUT = """{% extends "!layout.html" %}
{% block extrahead %}{{ super() }}
{% for code in languages %}
<link rel="alternate" hreflang="{{ code }}" href="{{ site_url }}/{{ code }}/{{ pagename }}.html">
{% endfor %}<link rel="alternate" hreflang="x-default" href="{{ site_url }}/en/{{ pagename }}.html">{% endblock %}
{% block menu %}{{ super() }}<p>Languages:
{% for code in languages %}<a href="{{ site_url }}/{{ code }}/{{ pagename }}.html">{{ code }}</a> {% endfor %}</p>
{% endblock %}
"""


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the English pages."""
    return [
        f"/en/{slug(text.topic.split('.')[0])}/{slug(title)}.html"
        for text, title in zip(texts, titles(texts), strict=True)
    ]


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Write the handbook, translate its messages, and build it in each language."""
    python = _python.environment(place, "docs", _python.DOCS)
    source, www = place / "source", place / "www"
    settings = _SETTINGS.format(title=site.options["title"], url=site.url, languages=list(LANGUAGES))
    _static.write(source / "conf.py", settings)
    _static.write(source / "_templates/layout.html", _LAYOUT)
    chapters: dict[str, list[str]] = {}
    for fill in fills:
        chapter, _, name = fill.path.removeprefix("/en/").removesuffix(".html").partition("/")
        chapters.setdefault(chapter, []).append(name)
        related = [
            Link(link.title, f"{link.url.removesuffix('.html').replace('/en/', '/')}.md") for link in fill.related
        ]
        _static.write(source / chapter / f"{name}.md", _static.page(fill._replace(related=related)))
    for chapter, names in chapters.items():
        listed = "\n".join(names)
        toc = f"# {chapter.capitalize()}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
        _static.write(source / chapter / "index.md", toc)
    listed = "\n".join(f"{chapter}/index" for chapter in chapters)
    _static.write(source / "index.md", f"# {site.options['title']}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n")
    run([python, "-m", "sphinx", "-q", "-b", "gettext", source, place / "pot"], place)
    for language in LANGUAGES[1:]:
        translate = translating.words(language)
        _static.write(place / "content.json", json.dumps({"words": translate, "language": language}))
        _python.fill(python, "sphinx_messages.py", place, {})
    for language in LANGUAGES:
        run([python, "-m", "sphinx", "-q", "-D", f"language={language}", source, www / language], place)
    moved = f'<meta http-equiv="refresh" content="0; url={site.url}/en/index.html">'
    languages = "".join(f'<a href="/{code}/index.html">{code}</a> ' for code in LANGUAGES)
    _static.write(
        www / "index.html", f"<html><head>{moved}<title>{site.options['title']}</title></head>{languages}</html>"
    )


def backend(site: Site, place: Path) -> Backend:
    """Serve its files."""
    return Backend(place / "www")


def read(site: Site, target: str) -> Shown:
    """Tell an English page, translations, and what is none."""
    kinds = [(r"/(en|de|fr)/_sources/", "source"), (r"/(en|de|fr)/_", "asset"), (r"/(de|fr)/", "translation")]
    kinds += [(r"/en/(genindex|search|py-modindex)", "index"), (r"/en/([^/]+/)?index\.html|/en/$", "list of pages")]
    return _static.read_static(target, r"/en/[^/]+/[^/]+\.html", kinds)

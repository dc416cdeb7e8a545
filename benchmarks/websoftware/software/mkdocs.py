"""MkDocs of the package index with the Material theme; option ``languages`` adds mkdocs-static-i18n, which shows the
English text in other languages as long as nobody has translated it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.site import Backend, Fill, Link, Shown, Site
from benchmarks.websoftware.software import _python, _static
from benchmarks.websoftware.software._common import run, slug, titles
from benchmarks.websoftware.texts import Text

NEEDS: Sequence[str] = ()
_SETTINGS = """
site_name: {title}
site_url: {url}/
theme:
  name: material
  font: false
plugins:
  - search
{more}
"""
_LANGUAGES = """
  - i18n:
      docs_structure: suffix
      languages:
        - {locale: en, default: true, name: English, build: true}
        - {locale: de, name: Deutsch, build: true}
        - {locale: es, name: Español, build: true}
"""


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the pages."""
    return [
        f"/{slug(text.topic.split('.')[0])}/{slug(title)}/" for text, title in zip(texts, titles(texts), strict=True)
    ]


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Write the pages and build them."""
    python = _python.environment(place, "docs", _python.DOCS)
    more = _LANGUAGES if site.options.get("languages") else ""
    settings = _SETTINGS.format(title=site.options["title"], url=site.url, more=more)
    _static.write(place / "mkdocs.yml", settings)
    for fill in fills:
        related = [Link(link.title, f"..{link.url.rstrip('/')}.md") for link in fill.related]
        _static.write(place / "docs" / f"{fill.path.strip('/')}.md", _static.page(fill._replace(related=related)))
    _static.write(place / "docs/index.md", f"# {site.options['title']}\n\nChoose a chapter on the left.\n")
    run([python, "-m", "mkdocs", "build", "--quiet"], place)


def backend(site: Site, place: Path) -> Backend:
    """Serve its files."""
    return Backend(place / "site", missing="/404.html")


def read(site: Site, target: str) -> Shown:
    """Tell a page, its translations, and what is none."""
    if target.startswith(("/de/", "/es/")) and site.options.get("languages"):
        shown = _static.read_static(target[3:], r"/[^/]+/[^/]+/", [(r"/assets/|/search/", "asset")])
        return Shown(shown.path, "translation" if shown.kind != "asset" else "asset")
    return _static.read_static(target, r"/[^/]+/[^/]+/", [(r"/assets/|/search/", "asset"), (r"/sitemap", "sitemap")])

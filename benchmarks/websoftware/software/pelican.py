"""Pelican of the package index with its default theme and feeds: articles of categories, tags and authors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import MARKDOWN
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software import _python, _static
from benchmarks.websoftware.software._common import day, run, slug, titles
from benchmarks.websoftware.texts import Text

NEEDS: Sequence[str] = ()
PACKAGES = ("pelican==4.10.2", "markdown==3.10")
_SETTINGS = """
AUTHOR = "Anna"
SITENAME = {title!r}
SITEURL = {url!r}
PATH = "content"
TIMEZONE = "UTC"
DEFAULT_LANG = "en"
FEED_ALL_ATOM = "feeds/all.atom.xml"
CATEGORY_FEED_ATOM = "feeds/{{slug}}.atom.xml"
LINKS = {links!r}
DEFAULT_PAGINATION = 10
"""


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the articles."""
    return [f"/{slug(title)}.html" for title in titles(texts)]


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Write the articles and build them."""
    python = _python.environment(place, "pelican", PACKAGES)
    links = tuple((link.title, link.url) for fill in fills[:12] for link in fill.abroad)[:5]
    settings = _SETTINGS.format(title=site.options["title"], url=site.url, links=links)
    _static.write(place / "pelicanconf.py", settings)
    for number, fill in enumerate(fills):
        tags = ", ".join(sorted({word for word in fill.title.lower().split() if len(word) > 4})[:3])
        head = {"Title": fill.title, "Slug": slug(fill.title), "Date": day(number, len(fills)), "Tags": tags}
        head |= {"Category": fill.text.topic.split(".")[0], "Author": ("Anna", "Bertil", "Carmen")[number % 3]}
        lines = "".join(f"{key}: {value}\n" for key, value in head.items())
        _static.write(place / "content" / f"{slug(fill.title)}.md", f"{lines}\n{MARKDOWN.whole(fill)}")
    run([python, "-m", "pelican", "content", "-s", "pelicanconf.py", "-o", "www", "--quiet"], place)


def backend(site: Site, place: Path) -> Backend:
    """Serve its files."""
    return Backend(place / "www")


def read(site: Site, target: str) -> Shown:
    """Tell an article from lists of them."""
    kinds = [(rf"/{name}/", name) for name in ("category", "tag", "author", "theme", "feeds")]
    kinds += [(r"/(archives|categories|tags|authors|index\d*)\.html", "list of pages")]
    return _static.read_static(target, r"/[^/]+\.html", kinds)

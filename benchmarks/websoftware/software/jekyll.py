"""Jekyll of Debian with its default theme minima and the plug-ins for feed, tags for search engines and site map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import MARKDOWN
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software import _static
from benchmarks.websoftware.software._common import day, run, slug, titles
from benchmarks.websoftware.texts import Text

NEEDS = ["/usr/bin/jekyll", "/usr/share/doc/jekyll-theme-minima", "/usr/share/doc/ruby-jekyll-sitemap"]
_SETTINGS = """
title: "{title}"
url: "{url}"
theme: minima
plugins: [jekyll-feed, jekyll-seo-tag, jekyll-sitemap]
"""


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the posts."""
    found = []
    for number, (text, title) in enumerate(zip(texts, titles(texts), strict=True)):
        date = day(number, len(texts)).replace("-", "/")
        found.append(f"/{slug(text.topic.split('.')[0])}/{date}/{slug(title)}.html")
    return found


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Write the posts and build them."""
    _static.write(place / "_config.yml", _SETTINGS.format(title=site.options["title"], url=site.url))
    _static.write(place / "index.md", "---\nlayout: home\n---\n")
    _static.write(
        place / "about.md", "---\nlayout: page\ntitle: About\npermalink: /about/\n---\nNotes of many years.\n"
    )
    for number, fill in enumerate(fills):
        head = {"layout": "post", "title": f'"{fill.title}"', "categories": slug(fill.text.topic.split(".")[0])}
        body = MARKDOWN.whole(fill)
        text = f"{_static.front_matter(head)}{{% raw %}}\n{body}\n{{% endraw %}}\n"
        _static.write(place / "_posts" / f"{day(number, len(fills))}-{slug(fill.title)}.md", text)
    run(["jekyll", "build", "--quiet"], place, {"LANG": "C.UTF-8"})


def backend(site: Site, place: Path) -> Backend:
    """Serve its files."""
    return Backend(place / "_site")


def read(site: Site, target: str) -> Shown:
    """Tell a post from what else there is."""
    kinds = [(r".*\.xml$", "feed"), (r"/assets/", "asset")]
    return _static.read_static(target, r"/[^/]+/\d{4}/\d\d/\d\d/[^/]+\.html", kinds)

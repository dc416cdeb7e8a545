"""Sites of JavaScript from the npm registry: VitePress, which renders its pages when it is built, and docsify, a
single-page application whose server answers every path with the same shell.

Option ``app`` is ``vitepress`` or ``docsify``. The texts of docsify cannot be read without running its scripts: its
Markdown files can be fetched, but no HTML page has them, so none of them is counted as useful.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import MARKDOWN
from benchmarks.websoftware.site import Backend, Fill, Link, Shown, Site
from benchmarks.websoftware.software import _static
from benchmarks.websoftware.software._common import run, slug, split, titles
from benchmarks.websoftware.texts import Text

NEEDS = ["/usr/bin/node", "/usr/bin/npm"]
_PACKAGES = {"vitepress": "vitepress@1.6.4", "docsify": "docsify@4.13.1"}
_SHELL = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<link rel="stylesheet" href="/lib/themes/vue.css"></head><body><div id="app">Please wait...</div>
<script>window.$docsify = {{name: "{title}", routerMode: "history", basePath: "/", loadSidebar: true, alias:
{{"/.*/_sidebar.md": "/_sidebar.md"}}}}</script><script src="/lib/docsify.min.js"></script>
<noscript>This site needs JavaScript. <a href="{other}">{other}</a></noscript></body></html>
"""


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the pages."""
    ending = ".html" if site.options["app"] == "vitepress" else ""
    return [
        f"/{slug(text.topic.split('.')[0])}/{slug(title)}{ending}"
        for text, title in zip(texts, titles(texts), strict=True)
    ]


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Install the packages, write the pages, and build them."""
    app = site.options["app"]
    _static.write(place / "package.json", json.dumps({"name": "site", "private": True, "type": "module"}))
    run(["npm", "install", "--no-audit", "--no-fund", "--silent", _PACKAGES[app]], place)
    docs = place / "docs"
    for fill in fills:
        _static.write(docs / f"{fill.path.strip('/').removesuffix('.html')}.md", _page(app, fill))
    if app == "docsify":
        listed = "".join(f"- [{fill.title}]({fill.path}.md)\n" for fill in fills)
        _static.write(docs / "_sidebar.md", listed)
        _static.write(docs / "README.md", f"# {site.options['title']}\n")
        other = next((link.url for fill in fills for link in fill.abroad), site.url)
        _static.write(docs / "index.html", _SHELL.format(title=site.options["title"], other=other))
        if not (docs / "lib").exists():
            (docs / "lib").symlink_to(place / "node_modules/docsify/lib")
        return
    topics: dict[str, list[dict[str, str]]] = {}
    for fill in fills:
        link = fill.path.removesuffix(".html")
        topics.setdefault(fill.path.split("/")[1], []).append({"text": fill.title, "link": link})
    sidebar = [{"text": topic, "collapsed": True, "items": items} for topic, items in topics.items()]
    settings = {"title": site.options["title"], "ignoreDeadLinks": True, "themeConfig": {"sidebar": sidebar}}
    settings |= {"markdown": {"html": False}, "sitemap": {"hostname": site.url}}
    _static.write(docs / ".vitepress/config.mjs", f"export default {json.dumps(settings)}\n")
    _static.write(docs / "index.md", f"# {site.options['title']}\n\n{_static.listed(fills[:10])}")
    run(["npx", "vitepress", "build", "docs"], place, {"NODE_OPTIONS": "--max-old-space-size=3000"})


def _page(app: str, fill: Fill) -> str:
    """Return a page; in one of VitePress double braces would be Vue's, if nobody said that they are not."""
    related = [Link(link.title, link.url.removesuffix(".html")) for link in fill.related]
    if app == "docsify":
        return _static.page(fill._replace(related=related))
    return f"# {fill.title}\n\n::: v-pre\n{MARKDOWN.whole(fill._replace(related=related))}\n:::\n"


def backend(site: Site, place: Path) -> Backend:
    """Serve its files; docsify's server sends its shell for whatever is not there."""
    if site.options["app"] == "docsify":
        return Backend(place / "docs", missing="200 /index.html")
    return Backend(place / "docs/.vitepress/dist", missing="/404.html")


def read(site: Site, target: str) -> Shown:
    """Tell a page; of an application nothing but its shell."""
    if site.options["app"] == "docsify":
        path, _ = split(target)
        return Shown(None, "asset" if path.startswith("/lib/") else "source" if path.endswith(".md") else "shell")
    return _static.read_static(target, r"/[^/]+/[^/]+\.html", [(r"/assets/", "asset"), (r"/sitemap", "sitemap")])

"""Nikola of the package index as ``nikola init`` sets it up, in two languages: posts without a translation are shown in
the other language all the same, as its default says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import MARKDOWN
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software import _python, _static
from benchmarks.websoftware.software._common import day, run, slug, titles
from benchmarks.websoftware.texts import Text

NEEDS: Sequence[str] = ()


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the posts."""
    return [f"/posts/{slug(title)}/" for title in titles(texts)]


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Write the posts and build them."""
    python = _python.environment(place, "docs", _python.DOCS)
    run([python, "-m", "nikola", "init", "--quiet", "blog"], place)
    blog = place / "blog"
    settings = (blog / "conf.py").read_text()
    for pattern, value in (
        (r"^BLOG_TITLE = .*$", f'BLOG_TITLE = "{site.options["title"]}"'),
        (r"^SITE_URL = .*$", f'SITE_URL = "{site.url}/"'),
        (r"^DEFAULT_LANG = .*$", 'DEFAULT_LANG = "en"'),
        (r'^    DEFAULT_LANG: "",$', '    DEFAULT_LANG: "", "de": "./de",'),
        (r"^POSTS = \($", 'POSTS = (("posts/*.md", "posts", "post.tmpl"),'),
    ):
        settings = re.sub(pattern, value, settings, count=1, flags=re.MULTILINE)
    (blog / "conf.py").write_text(settings)
    for number, fill in enumerate(fills):
        tags = ", ".join(sorted({word for word in fill.title.lower().split() if len(word) > 4})[:3])
        head = {"title": fill.title, "slug": slug(fill.title), "date": f"{day(number, len(fills))} 08:00:00 UTC"}
        head |= {"tags": tags, "category": fill.text.topic.split(".")[0], "type": "text"}
        lines = "".join(f".. {key}: {value}\n" for key, value in head.items())
        _static.write(blog / "posts" / f"{slug(fill.title)}.md", f"<!--\n{lines}-->\n\n{MARKDOWN.whole(fill)}")
    run([python, "-m", "nikola", "build", "--quiet"], blog)


def backend(site: Site, place: Path) -> Backend:
    """Serve its files."""
    return Backend(place / "blog/output", missing="/404.html")


def read(site: Site, target: str) -> Shown:
    """Tell a post, the same in the other language, and what is none."""
    if target.startswith("/de/"):
        shown = _static.read_static(target[3:], r"/posts/[^/]+/", [])
        return Shown(shown.path, "translation")
    kinds = [(r"/posts/[^/]+/.*\.md$|.*\.md$", "source"), (r"/categories/", "category"), (r"/assets/", "asset")]
    kinds += [(r"/(archive|index|\d{4}/)", "calendar and dates"), (r".*\.xml$", "feed")]
    if target.partition("?")[0] == "/index.html":
        return Shown(None, "front page")
    return _static.read_static(target, r"/posts/[^/]+/", kinds)

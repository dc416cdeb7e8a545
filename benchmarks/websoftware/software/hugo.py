"""Hugo of Debian with a theme of its own: posts, sections, tags, pages of lists, feeds and a site map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import MARKDOWN
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software import _static
from benchmarks.websoftware.software._common import day, run, slug, titles
from benchmarks.websoftware.texts import Text

NEEDS = ["/usr/bin/hugo"]
_BASE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{{ .Title }} - {{ .Site.Title }}</title>
{{ hugo.Generator }}<link rel="canonical" href="{{ .Permalink }}">
{{ range .AlternativeOutputFormats }}
<link rel="{{ .Rel }}" type="{{ .MediaType.Type }}" href="{{ .Permalink }}">{{ end }}
</head><body><header><nav><a href="{{ "/" | relURL }}">{{ .Site.Title }}</a> <a href="/posts/">Posts</a>
<a href="/tags/">Tags</a> <a href="/categories/">Categories</a></nav></header>
<main>{{ block "main" . }}{{ end }}</main><footer>{{ range first 5 (where .Site.RegularPages "Section" "posts") }}
<a href="{{ .RelPermalink }}">{{ .Title }}</a> {{ end }}</footer></body></html>
"""
_LIST = """{{ define "main" }}<h1>{{ .Title }}</h1>{{ .Content }}{{ range .Paginator.Pages }}<article><h2>
<a href="{{ .RelPermalink }}">{{ .Title }}</a></h2><time>{{ .Date.Format "2006-01-02" }}</time><p>{{ .Summary }}</p>
</article>{{ end }}{{ template "_internal/pagination.html" . }}{{ end }}
"""
_SINGLE = """{{ define "main" }}<article><h1>{{ .Title }}</h1><time>{{ .Date.Format "2006-01-02" }}</time>{{ .Content }}
<p>{{ range (.GetTerms "tags") }}<a href="{{ .RelPermalink }}">#{{ .LinkTitle }}</a> {{ end }}</p></article>
{{ with .PrevInSection }}<a href="{{ .RelPermalink }}">{{ .Title }}</a>{{ end }}
{{ with .NextInSection }}<a href="{{ .RelPermalink }}">{{ .Title }}</a>{{ end }}{{ end }}
"""


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the posts."""
    return [f"/posts/{slug(title)}/" for title in titles(texts)]


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Write theme and posts, and build them."""
    for name, text in (("baseof", _BASE), ("list", _LIST), ("single", _SINGLE)):
        _static.write(place / f"layouts/_default/{name}.html", text)
    _static.write(place / "layouts/404.html", '{{ define "main" }}<h1>Page not found</h1>{{ end }}')
    settings = (
        f'baseURL = "{site.url}/"\ntitle = "{site.options["title"]}"\nlanguageCode = "en"\nenableRobotsTXT = true\n'
    )
    _static.write(place / "config.toml", settings)
    for number, fill in enumerate(fills):
        tags = sorted({word for word in fill.title.lower().split() if len(word) > 4})[:3]
        head = {"title": f'"{fill.title}"', "slug": slug(fill.title), "date": day(number, len(fills))}
        head |= {"tags": f"[{', '.join(tags)}]", "categories": f"[{fill.text.topic.split('.')[0]}]"}
        text = _static.front_matter(head) + MARKDOWN.whole(fill).replace("{{", "{&#123;")
        _static.write(place / "content/posts" / f"{slug(fill.title)}.md", text)
    run(["hugo", "--quiet"], place)


def backend(site: Site, place: Path) -> Backend:
    """Serve its files."""
    return Backend(place / "public", missing="/404.html")


def read(site: Site, target: str) -> Shown:
    """Tell a post from lists and feeds."""
    kinds = [(r".*\.xml$", "feed"), (r".*/page/", "page of a list"), (r"/tags/", "tag"), (r"/categories/", "category")]
    return _static.read_static(target, r"/posts/[^/]+/", kinds)

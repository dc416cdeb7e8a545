"""ikiwiki of Debian, compiled from Markdown: a wiki and a blog of static pages with tags, archives and a calendar."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.websoftware.markup import MARKDOWN
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software import _static
from benchmarks.websoftware.software._common import day, run, slug, titles
from benchmarks.websoftware.texts import Text

NEEDS = ["/usr/bin/ikiwiki", "/usr/bin/ikiwiki-calendar"]


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the pages."""
    return [
        f"/{slug(text.topic.split('.')[0])}/{slug(title)}/" for text, title in zip(texts, titles(texts), strict=True)
    ]


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Write the pages and compile them."""
    source, www = place / "source", place / "www"
    www.mkdir(parents=True)
    topics = sorted({fill.path.split("/")[1] for fill in fills})
    for number, fill in enumerate(fills):
        words = [word for word in fill.title.lower().split() if len(word) > 4][:2]
        tags = " ".join(f"[[!tag {word}]]" for word in words)
        head = f'[[!meta title="{fill.title}"]] [[!meta date="{day(number, len(fills))} 12:00:00"]]'
        body = MARKDOWN.whole(fill).replace("[[", "\\[[")
        _static.write(source / f"{fill.path.strip('/')}.mdwn", f"{head}\n\n{body}\n{tags}\n")
    for topic in topics:
        _static.write(source / f"{topic}.mdwn", f'[[!inline pages="{topic}/*" archive="yes" show="0" feeds="yes"]]\n')
    _static.write(
        source / "index.mdwn", "\n".join(f"* [[{topic}]]" for topic in topics) + "\n\nSee the [[archives]].\n"
    )
    _static.write(source / "sidebar.mdwn", '[[!calendar pages="*/*"]]\n\n[[index]]\n')
    _static.write(source / "archives.mdwn", '[[!calendar type="year" pages="*/*"]]\n')
    options = ["--url", site.url, "--set", f"wikiname={site.options['title']}", "--set", "rss=1"]
    options += ["--plugin", "calendar", "--plugin", "tag", "--plugin", "sidebar", "--plugin", "goodstuff"]
    options += ["--set", "tagbase=tags", "--set", "archivebase=archives", "--set", "calendar_autocreate=1"]
    run(["ikiwiki", *options, source, www], place, {"HOME": str(place)})


def backend(site: Site, place: Path) -> Backend:
    """Serve its files."""
    return Backend(place / "www")


def read(site: Site, target: str) -> Shown:
    """Tell a page from lists, calendars and tags."""
    kinds = [
        (r"/archives/", "calendar and dates"),
        (r"/tags/", "tag"),
        (r".*\.(rss|atom)$", "feed"),
        (r"/ikiwiki/", "help"),
    ]
    return _static.read_static(target, r"/[^/]+/[^/]+/", kinds)

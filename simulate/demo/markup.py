"""HTML of the demo web's pages: head, menus, main part, related links, sidebar and footer, in three designs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NamedTuple

from simulate.demo.content import Block, Bullets, Heading, Images, Line, Paragraph
from simulate.demo.web import OutLink, Page, PageLinks, Site


class Design(NamedTuple):
    """What differs in the HTML of sites."""

    doctype: str
    before: str
    """Between the header and the main part."""
    after: str
    """Between the main part and what is related to it."""
    aside: tuple[str, str]
    """Start and end of the sidebar."""
    extra: str
    """Something that no reader came for."""


_DESIGNS: Final = (
    Design(
        "<!DOCTYPE html>",
        "<main>\n<article>",
        "</article>\n</main>",
        ('<aside class="sidebar">\n<h3>Popular</h3>', "</aside>"),
        '<div class="cookie-banner"><p>This website uses cookies.</p><button>Accept</button></div>',
    ),
    Design(
        '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">',
        '<div id="page">\n<div id="content">\n<div class="post-content">',
        "</div>\n</div>\n</div>",
        ('<div id="sidebar" class="sidebar">\n<h4>Most read</h4>', "</div>"),
        '<script>var stats = stats || []; stats.push(["trackPageview"]);</script>',
    ),
    Design(
        "<!doctype html>",
        '<div class="wrapper">\n<div class="main-content" role="main">\n<section class="entry-content">',
        "</section>\n</div>\n</div>",
        ('<div class="widget-area sidebar">\n<h3>Hot topics</h3>', "</div>"),
        '<div class="ad-banner"><ins class="adslot" data-slot="7731"></ins></div>',
    ),
)
_STYLE: Final = "body{font-family:sans-serif;margin:0 auto;max-width:60em}nav li{display:inline}"


def page_html(site: Site, page: Page, blocks: Sequence[Block], links: PageLinks, canonical: str | None) -> str:
    """The whole page; its links stand in the order of ``links.in_order()``."""
    design = _DESIGNS[site.number % len(_DESIGNS)]
    aside_start, aside_end = design.aside
    parts = [
        design.doctype,
        f'<html lang="{page.language}">',
        _head(site, page, blocks, canonical),
        "<body>",
        f'<header class="site-header">\n<div class="site-name">{escape(site.name)}</div>',
        *([f"<nav>\n{_link_list(site, links.header)}\n</nav>"] if links.header else []),
        "</header>",
        design.before,
        *(_block(site, block) for block in blocks),
        *(
            [f'<div class="pager">{" | ".join(_anchor(site, link) for link in links.pager)}</div>']
            if links.pager
            else []
        ),
        design.after,
        *(
            [f'<div class="related-posts">\n<h3>Related</h3>\n{_link_list(site, links.related)}\n</div>']
            if links.related
            else []
        ),
        *([f"{aside_start}\n{_link_list(site, links.sidebar)}\n{aside_end}"] if links.sidebar else []),
        design.extra,
        f'<footer class="site-footer">\n<p>&copy; {escape(site.name)}. All rights reserved.</p>',
        *([_link_list(site, links.footer)] if links.footer else []),
        "</footer>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)


def _head(site: Site, page: Page, blocks: Sequence[Block], canonical: str | None) -> str:
    description = next((block.line.plain() for block in blocks if isinstance(block, Paragraph)), site.name)[:150]
    lines = [
        '<head>\n<meta charset="utf-8">',
        f"<title>{escape(page.title)} - {escape(site.name)}</title>",
        f'<meta name="description" content="{escape(description)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style>",
    ]
    if canonical:
        lines.append(f'<link rel="canonical" href="{escape(canonical)}">')
    return "\n".join([*lines, "</head>"])


def _block(site: Site, block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        return f"<p>{_line(site, block.line)}</p>"
    if isinstance(block, Bullets):
        return "<ul>\n" + "\n".join(f"<li>{_line(site, line)}</li>" for line in block.lines) + "\n</ul>"
    if isinstance(block, Images):
        return "\n".join(f'<figure><img src="/images/{name}.jpg" alt=""></figure>' for name in block.names)
    head, *rows = block.rows
    return "\n".join(["<table>", _row("th", head), *(_row("td", row) for row in rows), "</table>"])


def _row(cell: str, texts: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{cell}>{escape(text)}</{cell}>" for text in texts) + "</tr>"


def _line(site: Site, line: Line) -> str:
    if line.link is None:
        return escape(line.text)
    return escape(line.text) + _anchor(site, line.link) + escape(line.after)


def _anchor(site: Site, link: OutLink) -> str:
    """The link, relative within the site as most links on the web are."""
    inside = link.url.startswith(site.base + "/")
    return f'<a href="{escape(link.url[len(site.base) :] if inside else link.url)}">{escape(link.anchor)}</a>'


def _link_list(site: Site, links: Iterable[OutLink]) -> str:
    return "<ul>\n" + "\n".join(f"<li>{_anchor(site, link)}</li>" for link in links) + "\n</ul>"

"""The site of the documentation: Sphinx with Furo over the Markdown of this folder. `make docs` builds it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

HERE = Path(__file__).parent
REPOSITORY = "https://github.com/crawl4llm/crawl4llm/blob/main/"

project = "crawl4llm"
html_title = "crawl4llm"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
extensions = ["myst_nb", "sphinx_copybutton"]
smartquotes = False  # it would print the option --out as a dash and a word
exclude_patterns = ["**.ipynb_checkpoints"]
nb_execution_mode = "off"
myst_heading_anchors = 4
html_copy_source = False
html_show_copyright = False


def _navigation(text: str) -> str:
    """Return the lists of links of docs/index.md as navigation; what they leave out comes last."""
    trees, named = [], {"index"}
    for section in text.split("\n## ")[1:]:
        caption, _, rest = section.partition("\n")
        links = re.findall(r"^- \[(.+?)\]\(([\w/-]+)\.(?:md|ipynb)\)", rest, re.MULTILINE)
        named.update(page for _, page in links)
        trees.append((caption, [f"{title} <{page}>" for title, page in links]))
    left = sorted({path.stem for path in HERE.glob("*.md")} - named)
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:titlesonly:\n:caption: {caption}\n\n{chr(10).join(pages)}\n```\n"
        for caption, pages in [*trees, ("More", left)]
        if pages
    )


def _read(_app: Sphinx, name: str, source: list[str]) -> None:
    """Give the first page its navigation, and lead links out of this folder to the repository."""
    if name == "index":
        source[0] += _navigation(source[0])
    source[0] = re.sub(r"\]\(\.\./([^)]+)\)", rf"]({REPOSITORY}\1)", source[0])


def _mend(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Add what axe-core misses in the theme: the level of headings in the navigation; focus for wide code, tables."""
    tree = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')
    body = context.get("body", "").replace("<pre>", '<pre tabindex="0">')
    context["body"] = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')


def setup(app: Sphinx) -> None:
    """Let Sphinx call what is above; the theme makes the navigation before."""
    app.connect("source-read", _read)
    app.connect("html-page-context", _mend, priority=900)

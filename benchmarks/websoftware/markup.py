"""Texts in the markup of what they fill: HTML, Markdown, MediaWiki, DokuWiki, Trac, plain text."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.websoftware.site import Fill, Link
from benchmarks.websoftware.texts import Block

_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~$])")
_LINE_MARKS = re.compile(r"^(\s*)([-+=]|\d+[.)])", re.MULTILINE)
_TRAC_MARKS = re.compile(r"(\b[A-Z][a-z0-9]+[A-Z]\w*|\[|#\d|\{\d|\br\d+\b|\b\w+:\S|\{{3}|\|\||'{2,}|`|\^|__|~~|,,)")


class Markup(NamedTuple):
    """How a markup writes blocks; each function gets text that is not escaped."""

    head: Callable[[str], str]
    paragraph: Callable[[str], str]
    item: Callable[[str], str]
    code: Callable[[str], str]
    here: Callable[[Link], str]
    """A link in the site."""
    abroad: Callable[[Link], str]
    """A link to another site."""

    def block(self, block: Block) -> str:
        """Return a block."""
        write = {"head": self.head, "p": self.paragraph, "item": self.item, "code": self.code}
        return write[block.kind](block.text)

    def whole(self, fill: Fill) -> str:
        """Return a text with its links below."""
        body = self.blocks(fill)
        links = [self.here(link) for link in fill.related]
        others = [self.abroad(link) for link in fill.abroad]
        parts = [body, *([self.head("See also"), "\n".join(links)] if links else [])]
        parts += [self.head("Elsewhere"), "\n".join(others)] if others else []
        return "\n\n".join(parts) + "\n"

    def blocks(self, fill: Fill) -> str:
        """Return a text without links."""
        written = ""
        for number, block in enumerate(fill.text.blocks):
            before = fill.text.blocks[number - 1].kind if number else ""
            gap = "\n" if block.kind == before == "item" else "\n\n"
            written += (gap if number else "") + self.block(block)
        return written


def _escaped_markdown(text: str) -> str:
    return _LINE_MARKS.sub(r"\1\\\2", _MARKS.sub(r"\\\1", text))


def _wiki_text(text: str) -> str:
    """Return a text for MediaWiki: no mark of it is markup."""
    escaped = html.escape(text, quote=False)
    escaped = re.sub(r"([\[\]{}|'~_])", lambda mark: f"&#{ord(mark[0])};", escaped).replace("://", ":&#47;/")
    return re.sub(r"^[*#:;=\-! ]", lambda mark: f"&#{ord(mark[0])};", escaped)


def _doku_text(text: str) -> str:
    return f"%%{text.replace('%%', '% %')}%%" if re.search(r"[\[\]{}*_/\\<>'|^~@(-]{2}|://|\\\\", text) else text


def _trac_text(text: str) -> str:
    return _TRAC_MARKS.sub(r"!\1", text)


def _title(link: Link) -> str:
    return html.escape(link.title)


HTML = Markup(
    lambda text: f"<h2>{html.escape(text)}</h2>",
    lambda text: f"<p>{html.escape(text)}</p>",
    lambda text: f"<ul><li>{html.escape(text)}</li></ul>",
    lambda text: f"<pre><code>{html.escape(text)}</code></pre>",
    lambda link: f'<p><a href="{html.escape(link.url)}">{_title(link)}</a></p>',
    lambda link: f'<p><a href="{html.escape(link.url)}">{_title(link)}</a></p>',
)
MARKDOWN = Markup(
    lambda text: f"## {_escaped_markdown(text)}",
    _escaped_markdown,
    lambda text: f"- {_escaped_markdown(text)}",
    lambda text: textwrap.indent(text, "    "),
    lambda link: f"- [{link.title}]({link.url})",
    lambda link: f"- [{link.title}]({link.url})",
)
MEDIAWIKI = Markup(
    lambda text: f"== {_wiki_text(text)} ==",
    _wiki_text,
    lambda text: f"* {_wiki_text(text)}",
    lambda text: f"<pre>{html.escape(text, quote=False)}</pre>",
    lambda link: f"* [[{link.title}]]",
    lambda link: f"* [{link.url} {link.title}]",
)
DOKUWIKI = Markup(
    lambda text: f"===== {text.replace('=', '-')} =====",
    _doku_text,
    lambda text: f"  * {_doku_text(text)}",
    lambda text: f"<code>\n{text.replace('</code>', '< /code>')}\n</code>",
    lambda link: f"  * [[{link.url}|{link.title}]]",
    lambda link: f"  * [[{link.url}|{link.title}]]",
)
TRAC = Markup(
    lambda text: f"== {_trac_text(text)}",
    _trac_text,
    lambda text: f" * {_trac_text(text)}",
    lambda text: "{{{\n" + text.replace("{{{", "{ {{").replace("}}}", "} }}") + "\n}}}",
    lambda link: f" * [{link.url} {link.title}]",
    lambda link: f" * [{link.url} {link.title}]",
)
PLAIN = Markup(
    lambda text: f"{text}\n{'-' * len(text)}",
    lambda text: textwrap.fill(text, 72, break_long_words=False),
    lambda text: textwrap.fill(text, 72, initial_indent="* ", subsequent_indent="  ", break_long_words=False),
    lambda text: textwrap.indent(text, "    "),
    lambda link: f"  {link.title}: {link.url}",
    lambda link: f"  {link.title}: {link.url}",
)

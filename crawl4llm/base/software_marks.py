"""Marks by which the software of an HTML page is recognised.

These are its generator meta, the paths of its scripts, styles and forms, some elements, and the cookies that came with
it. A mark can be false: a page may bear the marks of software that did not make it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawl4llm.base.html_tree import HtmlTree

GENERATOR, ASSETS, ELEMENT, COOKIE = "generator", "assets", "element", "cookie"
"""Kinds of marks."""
MOST_MARKS: Final = 12
"""Most marks of a page that are noted."""
_WITH_ASSETS: Final = {"script", "link", "img", "form"}
_MOST_ASSETS: Final = 300
_LONGEST_REFERENCE: Final = 1024


class Mark(NamedTuple):
    """A mark that a page bears."""

    software: str
    kind: str
    root: str = ""
    """The path at which the software is installed, by the place of its assets; empty if the mark does not tell."""


class Marks(NamedTuple):
    """The marks of a software."""

    generator: str = ""
    """A regular expression for the beginning of its generator meta."""
    assets: str = ""
    """A regular expression for a part of the paths of its scripts, styles, images and forms; it begins at the root of
    the software."""
    element: str = ""
    """A CSS selector of an element that only pages of this software have."""
    cookie: str = ""
    """A regular expression for the name of a cookie."""


SOFTWARE: Final = {
    # Wikis
    "mediawiki": Marks("MediaWiki", r"(?:w/)?load\.php\?", cookie=r"\w*wiki\w*_session"),
    "dokuwiki": Marks(
        "DokuWiki", r"lib/exe/(?:css|js|jquery|indexer|taskrunner|ajax)\.php", cookie="DokuWiki|DW[0-9a-f]{32}"
    ),
    "moinmoin": Marks("", r"moin_static\w*/", cookie="MOIN_SESSION.*"),
    "foswiki": Marks("", r"(?:foswiki/|twiki/)?pub/(?:System|TWiki)/", cookie="(?:FOSWIKI|TWIKI)(?:SID|STRIKEONE)"),
    "pmwiki": Marks("", r"(?:pmwiki/)?pub/skins/[\w-]+/"),
    "xwiki": Marks("", r"(?:xwiki/)?(?:bin/(?:ssx|jsx|skin)/|webjars/wiki)", "html[data-xwiki-document]"),
    "confluence": Marks("", "", 'meta[name="ajs-version-number"], meta[name="confluence-base-url"]'),
    "ikiwiki": Marks("ikiwiki", r"ikiwiki\.cgi", "div.pageheader span.parentlinks"),
    # Blogs and what manages content
    "wordpress": Marks("WordPress", r"wp-(?:content|includes)/"),
    "drupal": Marks(
        "Drupal", r"(?:sites/(?:default|all)/(?:files|themes|modules)/|core/(?:misc|assets|themes)/|misc/drupal\.js)"
    ),
    "joomla": Marks("Joomla", r"media/(?:system|jui|vendor/joomla[\w-]*)/(?:js|css)/"),
    "typo3": Marks("TYPO3", r"typo3(?:conf|temp)/", cookie="fe_typo_user"),
    "blogger": Marks("blogger"),
    "ghost": Marks("Ghost", r"public/cards\.min\.(?:css|js)"),
    "serendipity": Marks("Serendipity", r"serendipity\.css", cookie="s9y_.*"),
    "plone": Marks("Plone", r"\+\+plone\+\+|portal_(?:css|javascripts|kss)/"),
    # Forums
    "phpbb": Marks(
        "phpBB",
        r"styles/[\w-]+/(?:theme/|template/).*?assets_version=|styles/prosilver/",
        "body#phpbb",
        r"phpbb\w*_(?:u|k|sid)",
    ),
    "mybb": Marks(
        "MyBB", r"(?:jscripts/general\.js|cache/themes/theme\d+/|css\.php\?stylesheet)", cookie=r"mybb(?:\[.*|user)?"
    ),
    "vbulletin": Marks(
        "vBulletin", r"clientscript/(?:vbulletin|yui)", cookie=r"(?:bb_?|vb_?)(?:lastvisit|lastactivity|sessionhash)"
    ),
    "xenforo": Marks("", r"(?:js/xf/|css\.php\?css=public)", "html#XF, html#XenForo", r"xf_(?:csrf|session)"),
    "smf": Marks("SMF", r"Themes/default/scripts/(?:script|theme)\.js", cookie=r"SMFCookie\d+"),
    "fluxbb": Marks("", "", "div#punwrap, div.pun", r"(?:flux|pun)_?bb_cookie\w*"),
    "discourse": Marks("Discourse", "", "meta#data-discourse-setup", "_forum_session"),
    "flarum": Marks("", r"assets/forum-\w+\.(?:js|css)", "div#flarum-loading", "flarum_session"),
    "invision": Marks("", r"applications/core/interface/", "body.ipsApp", r"ips4_\w+"),
    "machina": Marks("", r"(?:static/)?(?:css|js)/machina\.(?:board_theme|packages|editor)"),
    "spirit": Marks("", r"(?:static/)?spirit/(?:stylesheets|scripts)/"),
    # Shops
    "woocommerce": Marks("WooCommerce", r"wp-content/plugins/woocommerce/"),
    "magento": Marks(
        "Magento",
        r"(?:(?:pub/)?static/(?:version\d+/)?(?:_cache/\w+/)?frontend/|skin/frontend/)",
        cookie="X-Magento-Vary|mage-.*",
    ),
    "opencart": Marks("OpenCart", r"catalog/view/(?:theme|javascript|stylesheet)/", cookie="OCSESSID"),
    "prestashop": Marks("PrestaShop", r"modules/(?:ps_|block)\w+/", cookie="PrestaShop-.*"),
    "shopify": Marks("Shopify", r"cdn/(?:shop/|shopifycloud/)", cookie="_shopify_.*"),
    "oscar": Marks("", r"(?:static/)?oscar/(?:css|js|img)/", cookie="oscar_(?:open_basket|history)"),
    "zencart": Marks("shopping cart program by Zen Cart", "", cookie="zenid"),
    # Trackers
    "trac": Marks("", r"chrome/common/(?:css|js)/", cookie="trac_(?:form_token|session|auth)"),
    "roundup": Marks("", r"@@file/", cookie=r"roundup_session\w*"),
    "bugzilla": Marks(
        "",
        r"skins/standard/|js/(?:yui3?|jquery)/.*?bugzilla",
        "form[action$='buglist.cgi'], #bugzilla-body",
        "Bugzilla_.*",
    ),
    "redmine": Marks("", "", 'meta[name="description"][content="Redmine"]', "_redmine_session"),
    "mantis": Marks("", r"(?:javascript_config|css/status_config|javascript_translations)\.php", cookie=r"MANTIS_\w+"),
    "jira": Marks("", "", 'meta[name="application-name"][content="JIRA" i]', r"atlassian\.xsrf\.token"),
    # Repositories
    "gitweb": Marks("gitweb", r"(?:static/)?gitweb\.(?:css|js)"),
    "cgit": Marks("cgit", "", "div#cgit"),
    "gitlab": Marks("", "", 'meta[property="og:site_name"][content="GitLab"]', "_gitlab_session"),
    "gitea": Marks(
        "",
        r"assets/(?:js/webcomponents|css/theme-(?:gitea|forgejo))",
        'meta[name="keywords"][content*="gitea" i], meta[name="keywords"][content*="forgejo" i]',
        "i_like_gitea",
    ),
    "viewvc": Marks("ViewVC", r"\*docroot\*/|viewvc-static/"),
    "hgweb": Marks("", r"(?:static/)?(?:hgicon|hglogo)\.png"),
    # Mail archives
    "public_inbox": Marks("", "", 'a[href$="_/text/help/"], a[href$="_/text/mirror/"]'),
    "pipermail": Marks("Pipermail", "", 'a[href^="author.html#"]'),
    "hypermail": Marks("hypermail"),
    "hyperkitty": Marks("", r"(?:static/)?hyperkitty/"),
    # Documentation
    "sphinx": Marks(
        "",
        r"_static/(?:documentation_options|doctools|sphinx_highlight|searchtools)\.js|_static/(?:pygments|basic)\.css",
    ),
    "mkdocs": Marks("mkdocs"),
    "javadoc": Marks("javadoc", "", 'link[rel="stylesheet"][href$="stylesheet.css"][title="Style"]'),
    "doxygen": Marks("Doxygen"),
    "rustdoc": Marks("rustdoc"),
    "docusaurus": Marks("Docusaurus"),
    # Static generators
    "hugo": Marks("Hugo"),
    "jekyll": Marks("Jekyll"),
    "pelican": Marks("Pelican"),
    "nikola": Marks("Nikola"),
    "hexo": Marks("Hexo"),
}
"""The marks of each software whose pages are recognised."""


def marks_of(page: HtmlTree, url: str, generator: str, resolve: Callable[[str], str | None]) -> tuple[Mark, ...]:
    """Return the marks of a page, without those of its cookies. ``generator``: the content of its generator meta;
    ``resolve``: returns the target of a reference of the page."""
    marks: dict[Mark, None] = {}
    if generator and (found := _GENERATORS.match(generator)) is not None:
        marks[Mark(str(found.lastgroup), GENERATOR)] = None
    marks.update(dict.fromkeys(_by_assets(page, url, resolve)))
    if page.css(_ANY_ELEMENT):
        elements = ((name, of.element) for name, of in SOFTWARE.items() if of.element)
        marks.update(dict.fromkeys(Mark(name, ELEMENT) for name, selector in elements if page.css(selector)))
    return tuple(islice(marks, MOST_MARKS))


def marks_of_cookies(headers: Iterable[tuple[bytes, bytes]]) -> list[Mark]:
    """Return the marks of the cookies in the header fields of an answer."""
    marks = []
    for name, value in headers:
        if name.lower() == b"set-cookie":
            cookie = value[:_LONGEST_REFERENCE].partition(b"=")[0].strip().decode("latin-1")
            if (found := _COOKIES.fullmatch(cookie)) is not None:
                marks.append(Mark(str(found.lastgroup), COOKIE))
    return marks[:MOST_MARKS]


def _by_assets(page: HtmlTree, url: str, resolve: Callable[[str], str | None]) -> Iterator[Mark]:
    """Yield marks by scripts, styles, images and forms of the page's own host, one for each software."""
    seen, own = set(), _host_and_path(url)[0]
    for node in islice((node for tag, node in page.references if tag in _WITH_ASSETS), _MOST_ASSETS):
        attributes = node.attributes
        reference = attributes.get("src") or attributes.get("href") or attributes.get("action") or ""
        if len(reference) > _LONGEST_REFERENCE or not (name := _software_of(reference)) or name in seen:
            continue
        if (target := resolve(reference)) is None:
            continue
        host, path = _host_and_path(target)
        place = _ASSETS.search(path)
        if place is None or place.lastgroup != name or host != own or "?" in path[: place.start(name)]:
            continue
        seen.add(name)
        yield Mark(name, ASSETS, path[: place.start(name)])


@lru_cache(maxsize=4096)
def _software_of(reference: str) -> str:
    """Return the software whose assets a reference may lead to; empty if there is none. Pages of a site share most."""
    found = _ASSETS.search(reference)
    return "" if found is None else str(found.lastgroup)


def _host_and_path(url: str) -> tuple[str, str]:
    """Return the host of a normalised URL with its port, and its path and query, which begin with a slash."""
    host, _, path = url.partition("://")[2].partition("/")
    return host, f"/{path}"


def _any_of(kind: str, *, before: str = "") -> re.Pattern[str]:
    """Return an expression that finds marks of a kind; the matching group is named after the software."""
    each = ((name, getattr(marks, kind)) for name, marks in SOFTWARE.items())
    return re.compile(before + "(?:" + "|".join(f"(?P<{name}>{one})" for name, one in each if one) + ")")


_GENERATORS: Final = _any_of(GENERATOR)
_ASSETS: Final = _any_of(ASSETS, before="(?:^|/)")
_COOKIES: Final = _any_of(COOKIE)
_ANY_ELEMENT: Final = ", ".join(marks.element for marks in SOFTWARE.values() if marks.element)

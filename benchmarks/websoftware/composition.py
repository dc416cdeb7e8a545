"""Which sites the web has, and what fills them. A change of anything here makes another web, with another digest."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.websoftware.site import Site

VERSION = 2
"""To be raised with each change of what the modules of software make of the same texts."""
_WIKI_ROBOTS = "User-agent: *\nDisallow: /index.php?\n"
"""As wikis with short URLs often have it: no actions, no old revisions."""

SITES = (
    Site(
        *("lexicon", "mediawiki", "www.openlexicon.test", "nginx", 420, 150),
        {"urls": "info", "title": "Open Lexicon"},
        also="openlexicon.test",
    ),
    Site(
        "handbook",
        "mediawiki",
        "handbook.fernwood.test",
        "apache",
        270,
        80,
        {"urls": "short", "title": "Fernwood Handbook", "robots": _WIKI_ROBOTS},
    ),
    Site(
        *("oldwiki", "mediawiki", "wiki.harbourlab.test", "nginx", 200, 60),
        {"urls": "query", "title": "Harbour Lab"},
        scheme="http",
    ),
    Site(
        *("intranet", "mediawiki", "intranet.fernwood.test", "apache", 0, 40),
        {"urls": "short", "title": "Fernwood Intranet", "private": "1"},
    ),
    Site("notes", "dokuwiki", "notes.harbourlab.test", "lighttpd", 230, 60, {"urls": "query", "title": "Lab Notes"}),
    Site("mapledocs", "dokuwiki", "docs.mapleworks.test", "apache", 200, 50, {"urls": "path", "title": "Maple Docs"}),
    Site(
        *("kb", "dokuwiki", "kb.riverbend.test", "nginx", 150, 40),
        {"urls": "query", "title": "Riverbend Knowledge Base", "sessions": "1"},
    ),
    Site(
        *("greenvalley", "wordpress", "www.greenvalley-blog.test", "nginx", 340, 100),
        {"permalinks": "date", "title": "Green Valley", "theme": "twentytwentyone"},
        also="greenvalley-blog.test",
    ),
    Site(
        *("letters", "wordpress", "letters.mapleworks.test", "apache", 230, 60),
        {"permalinks": "plain", "title": "Letters", "theme": "twentytwentytwo"},
    ),
    Site(
        *("journal", "wordpress", "www.stonebridge-journal.test", "caddy", 230, 60),
        {"permalinks": "archives", "title": "Stonebridge Journal", "theme": "twentytwentyone"},
        also="stonebridge-journal.test",
    ),
    Site(
        "forum",
        "spirit",
        "forum.riverbend.test",
        "nginx",
        310,
        150,
        {"title": "Riverbend Forum", "socket": "127.0.0.1:38101"},
    ),
    Site(
        "board",
        "machina",
        "board.makersguild.test",
        "caddy",
        230,
        100,
        {"title": "Makers' Board", "socket": "127.0.0.1:38102"},
    ),
    Site(
        *("shop", "oscar", "www.papertrail-books.test", "nginx", 310, 120),
        {"title": "Paper Trail Books", "socket": "127.0.0.1:38103"},
        also="papertrail-books.test",
    ),
    Site(
        "project", "trac", "trac.ironwood.test", "apache", 310, 100, {"title": "Ironwood", "socket": "127.0.0.1:38104"}
    ),
    Site(
        "bugs",
        "roundup",
        "bugs.harbourlab.test",
        "nginx",
        230,
        100,
        {"title": "Harbour Bugs", "socket": "127.0.0.1:38105"},
    ),
    Site("git", "gitweb", "git.ironwood.test", "nginx", 200, 80, {"cgi": "gitweb", "title": "Ironwood Git"}),
    Site("code", "gitweb", "code.makersguild.test", "lighttpd", 200, 80, {"cgi": "cgit", "title": "Makers' Code"}),
    Site(
        "lists", "lists", "lists.harbourlab.test", "lighttpd", 260, 60, {"archive": "mhonarc", "title": "Discussions"}
    ),
    Site(
        *("inbox", "lists", "inbox.ironwood.test", "caddy", 200, 50),
        {"archive": "public-inbox", "title": "Inbox", "socket": "127.0.0.1:38106"},
    ),
    Site("manual", "sphinx", "docs.ironwood.test", "nginx", 220, 60, {"title": "Ironwood Manual"}),
    Site(
        "guide", "mkdocs", "guide.papertrail.test", "apache", 150, 40, {"title": "Paper Trail Guide", "languages": "1"}
    ),
    Site("workshop", "mkdocs", "workshop.makersguild.test", "caddy", 150, 40, {"title": "Workshop"}),
    Site("weblog", "pelican", "blog.ironwood.test", "caddy", 180, 50, {"title": "Ironwood Blog"}),
    Site(
        *("harbour", "nikola", "www.quiet-harbour.test", "nginx", 180, 50),
        {"title": "Quiet Harbour"},
        also="quiet-harbour.test",
    ),
    Site("oak", "hugo", "www.oakandash.test", "caddy", 220, 60, {"title": "Oak and Ash"}, also="oakandash.test"),
    Site("elm", "jekyll", "notes.elmstreet.test", "lighttpd", 150, 40, {"title": "Elm Street"}),
    Site("garden", "ikiwiki", "garden.elmstreet.test", "lighttpd", 150, 40, {"title": "Garden"}),
    Site("learn", "javascript", "learn.quietharbour.test", "nginx", 150, 40, {"app": "vitepress", "title": "Learn"}),
    Site("app", "javascript", "app.elmstreet.test", "nginx", 0, 60, {"app": "docsify", "title": "Pocket Book"}),
)
"""Sites of the whole web: 29 installations under 35 names."""
SMALL = ("weblog", "bugs")
"""Sites of the small web, which the package index alone installs."""
ADDRESSES = "127.38.{}.{}"
"""Addresses of the names, one each."""


_SMALL_BLOCK = 9
"""Of the small web's addresses, so that it can be crawled beside the whole one."""


def addresses(sites: Sequence[Site] = SITES) -> dict[str, str]:
    """Return the address of each name."""
    names = [(name, _SMALL_BLOCK if site.server == "front" else 0) for site in sites for name in site.names]
    return {name: ADDRESSES.format(block, number + 1) for number, (name, block) in enumerate(names)}

"""Rules for wikis."""

from __future__ import annotations

from typing import Final

from crawl4llm.parts.site_rules.table import Q, Rule, Software

_SPECIAL: Final = (
    "Special|Spezial|Spécial|Especial|Speciale?|Speciaal|Spesial|Specjalna|Speciální|Špeciálne|Speciális|Toiminnot|Eri|"
    "Служебная|Спеціальна|Специални|Посебно|Posebno|Special-pages|Özel|Istimewa|Đặc_biệt|特別|特殊|特别|특수|พิเศษ|विशेष|"
    "מיוחד|ویژه|خاص|Ειδικό|Berezi|Speciala|Specialus|Aparteko|Kerfissíða"
)
"""Names of the namespace of special pages in MediaWiki's languages (``$namespaceNames``, ``NS_SPECIAL``)."""

SOFTWARE: Final = (
    Software(
        "mediawiki",
        "MediaWiki",
        "https://www.mediawiki.org/wiki/Manual:Parameters_to_index.php",
        (
            Rule("action", rf"{Q}(?:veaction|action)=(?!view\b)", "edit forms, histories, raw sources, logins"),
            Rule("revision", rf"{Q}(?:oldid|diff|direction|rcid|stable|stableid)=", "old revisions and differences"),
            Rule(
                "special",
                rf"(?:/|{Q}title=)(?:{_SPECIAL}):",
                "made from the database for each request; MediaWiki marks them noindex, nofollow",
                "https://www.mediawiki.org/wiki/Manual:Special_pages",
            ),
            Rule(
                "view",
                rf"{Q}(?:printable|mobileaction|useskin|uselang|redirect|redlink|curid|section|returnto|search|feed"
                r"|debug|variant|preload)=",
                "second views of a page, forms and feeds",
            ),
        ),
    ),
    Software(
        "dokuwiki",
        "DokuWiki",
        "https://www.dokuwiki.org/devel:action_modes",
        (
            Rule(
                "do",
                rf"{Q}(?:do|mddo)(?:%5b|\[|=)(?!show\b)",
                "edit forms, revisions, backlinks, logins, exports; DokuWiki marks all but show noindex, nofollow",
            ),
            Rule("revision", rf"{Q}(?:rev2?(?:\[\d*\])?|at|difftype)=", "old revisions and differences"),
            Rule(
                "index",
                rf"{Q}idx=",
                "the tree of namespaces, opened at each of them; noindex, nofollow",
                "https://www.dokuwiki.org/index",
            ),
            Rule(
                "view",
                rf"{Q}(?:s(?:\[\d*\])?|purge|sectok|tab_(?:files|details)|image|ns|q|vecdo|bookcreator)=",
                "a page with marked words, and the media manager",
            ),
            Rule(
                "file",
                r"/(?:feed\.php|lib/exe/(?:fetch|detail|mediamanager|xmlrpc|openapi|indexer|taskrunner)\.php|_(?:detail|media|export)/)",
                "feeds and media",
                "https://www.dokuwiki.org/rewrite",
            ),
        ),
    ),
    Software(
        "moinmoin",
        "MoinMoin",
        "https://moinmo.in/HelpOnActions",
        (
            Rule("action", rf"{Q}(?:action|do)=(?!show\b)", "edit forms, histories, raw sources, logins, attachments"),
            Rule("revision", rf"{Q}(?:rev\d?|date)=", "old revisions and differences"),
            Rule("view", rf"{Q}(?:highlight|mimetype|media)=", "a page with marked words, or for print"),
            Rule(
                "modern",
                r"/\+(?!index\b)[a-z]+/",
                "actions of MoinMoin 2: history, meta, diff, modify",
                "https://moin-20.readthedocs.io/",
            ),
        ),
    ),
    Software(
        "foswiki",
        "Foswiki and TWiki",
        "https://foswiki.org/System/CommandAndCGIScripts",
        (
            Rule(
                "script",
                r"/(?:edit|rdiff|rdiffauth|attach|oops|preview|rename|manage|register|save|search|changes|upload|login"
                r"|logon|logout|viewauth|viewfile|resetpasswd|statistics|rest|configure|compare|compareauth|history|natedit)"
                r"(?:\.\w+)?/[A-Z]",
                "edit forms, differences, logins, other scripts than view",
            ),
            Rule(
                "view",
                rf"{Q}(?:rev|raw|cover|skin|template|sortcol|up|table|t|rdiff)=",
                "old revisions, raw sources, sort orders, prints",
            ),
            Rule(
                "web",
                r"/(?:WebChanges|WebRss|WebAtom|WebSearch\w*|WebNotify|WebPreferences|WebStatistics)\b",
                "made for each web of the wiki",
            ),
        ),
    ),
    Software(
        "pmwiki",
        "PmWiki",
        "https://www.pmwiki.org/wiki/PmWiki/AvailableActions",
        (
            Rule("action", rf"{Q}action=(?!browse\b)", "edit forms, histories, sources, logins, prints"),
            Rule(
                "recent",
                r"[/.=](?:All)?RecentChanges\b|/Site(?:Admin)?[/.]",
                "changes, and the pages of the software",
                "https://www.pmwiki.org/wiki/PmWiki/SpecialPages",
            ),
        ),
    ),
    Software(
        "xwiki",
        "XWiki",
        "https://github.com/xwiki/xwiki-platform (robots.txt of xwiki-platform-tool-jetty)",
        (
            Rule("action", r"/bin/(?!view/|download/)[a-z]+/", "all actions but view and download"),
            Rule(
                "view",
                rf"{Q}(?:xpage|viewer|editor|rev|rev\d|outputSyntax|form_token|confirm)=",
                "histories, sources, comments, prints",
            ),
        ),
    ),
    Software(
        "confluence",
        "Confluence",
        "https://confluence.atlassian.com/doc/customizing-robots-txt-for-confluence (its robots.txt)",
        (
            Rule(
                "action",
                r"/(?:pages/(?:diffpages\w*|viewpreviousversions|viewpageattachments|viewinfo|viewpagesrc|copypage|editpage"
                r"|createpage|listundefinedpages|listorphanedpages|viewrecentblogposts|reorderpages|recentlyupdated|worddav"
                r"|doc?exportpage|flyingpdf|pageinfo)|spaces/(?:exportspace\w*|flyingpdf\w*|spacepermissions|space\w*rss)"
                r"|exportword|createrssfeed|dosearchsite|login|signup|users|admin|people|labels/(?:rss|listlabels\w*)|plugins/(?:advanced|likes|macrobrowser))\b",
                "differences, histories, exports, forms",
            ),
            Rule(
                "view",
                rf"{Q}(?:focusedCommentId|replyToComment|showComments|decorator|showChildren|os_destination|pageVersion|sortBy|preview)=",
                "second views of a page",
            ),
        ),
    ),
    Software(
        "ikiwiki",
        "ikiwiki",
        "https://ikiwiki.info/cgi/",
        (
            Rule("cgi", r"ikiwiki\.cgi", "edit forms, searches, logins"),
            Rule(
                "changes",
                r"/(?:recentchanges|change_[\w.]+|smileys|shortcuts|ikiwiki(?:/\w+)*|sandbox|templates)(?:/|\.html|$)",
                "each change as a page, and pages that come with the software",
                "https://ikiwiki.info/plugins/recentchanges/",
            ),
            Rule("tag", r"/tags?/[^/]+", "the same posts, by tag", "https://ikiwiki.info/plugins/tag/"),
            Rule(
                "date",
                r"/archives/(?:19|20)\d\d(?:/\d\d)?(?:/|\.html)?$",
                "the same posts, by date, with a calendar",
                "https://ikiwiki.info/plugins/calendar/",
            ),
            Rule(
                "feed",
                r"/?index\.(?:rss|atom)$|\.(?:rss|atom)$",
                "feeds",
                "https://ikiwiki.info/ikiwiki/directive/inline/",
            ),
        ),
    ),
)

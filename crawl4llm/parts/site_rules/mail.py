"""Rules for archives of mailing lists. Messages stay, and the lists by date and thread that lead to them."""

from __future__ import annotations

from typing import Final

from crawl4llm.parts.site_rules.table import Q, Rule, Software

SOFTWARE: Final = (
    Software(
        "public_inbox",
        "public-inbox",
        "https://public-inbox.org/design_www.html",
        (
            Rule(
                "raw",
                r"/(?:raw|new\.atom|new\.html|[tT]\.atom|t\.mbox(?:\.gz)?|all\.mbox\.gz|manifest\.js\.gz|d)$|\.mbox\.gz(?:\?|$)",
                "raw messages, feeds and boxes",
            ),
            Rule("thread", r"/t/(?:\?.*)?$", "a thread in another form than lists link to (`/T/`)"),
            Rule(
                "search", rf"{Q}(?:q|x|o|a|d|r)=|{Q}r$|/_/|/[0-9a-f]{{7,40}}/s/", "searches, helps, and blobs of code"
            ),
        ),
    ),
    Software(
        "pipermail",
        "Pipermail",
        "https://docs.mailman3.org/projects/mailman/en/latest/ (Mailman 2: Mailman/Archiver/HyperArch.py)",
        (
            Rule("order", r"/(?:author|subject)\.html", "the list of messages in other orders than by thread and date"),
            Rule("box", r"\.(?:txt|mbox)(?:\.gz)?$", "all messages of a month in one file"),
        ),
    ),
    Software(
        "hypermail",
        "Hypermail",
        "http://www.hypermail-project.org/hypermail.html",
        (
            Rule(
                "order",
                r"/(?:author|subject|attachment)\.html",
                "the list of messages in other orders than by thread and date",
            ),
        ),
    ),
    Software(
        "hyperkitty",
        "HyperKitty",
        "https://gitlab.com/mailman/hyperkitty/-/blob/master/hyperkitty/urls.py",
        (
            Rule(
                "form",
                r"/(?:accounts|users?|search|export|feed|message/new|mailman3?/lists)(?:/|\?|$)|/thread/[^/]+/(?:vote|reply|tags|suggest|set-category|reattach|delete|favorite|replies|last-views)|/message/[^/]+/(?:vote|attachment|delete)",
                "forms, members, searches, boxes",
            ),
            Rule(
                "view",
                rf"{Q}(?:sort|count|next|q|flag)=|/recent-(?:activity|threads)|/(?:posted-to|favorites|top-threads|most-active|last-views)(?:/|$)",
                "sort orders and statistics",
            ),
        ),
    ),
)

"""Rules for static site generators: lists of posts by tag, author and date show posts that other lists lead to."""

from __future__ import annotations

from typing import Final

from crawl4llm.parts.site_rules.blogs import DAY
from crawl4llm.parts.site_rules.table import Rule, Software

SOFTWARE: Final = (
    Software(
        "hugo",
        "Hugo",
        "https://gohugo.io/content-management/taxonomies/",
        (
            Rule("tag", r"/tags?/[^/?]+", "the same posts, by tag"),
            Rule("feed", r"/index\.xml$", "feeds", "https://gohugo.io/templates/rss/"),
            Rule("page", r"/page/1/?$", "redirects to the list itself", "https://gohugo.io/templates/pagination/"),
        ),
    ),
    Software(
        "jekyll",
        "Jekyll",
        "https://github.com/jekyll/jekyll-archives",
        (
            Rule("tag", r"/tags?/[^/?]+", "the same posts, by tag"),
            Rule("date", rf"^/(?:[\w-]+/)?{DAY}/?$", "the same posts, by date"),
            Rule("feed", r"/(?:feed|atom|rss)\.xml$", "feeds", "https://github.com/jekyll/jekyll-feed"),
        ),
    ),
    Software(
        "pelican",
        "Pelican",
        "https://docs.getpelican.com/en/latest/settings.html#url-settings",
        (
            Rule("tag", r"/tags?(?:/[^/?]+|\.html$)", "the same posts, by tag"),
            Rule("author", r"/authors?(?:/[^/?]+|\.html$)", "the same posts, by author"),
            Rule("date", rf"^/(?:posts?/|blog/)?{DAY}/?(?:index\.html)?$", "the same posts, by date"),
            Rule("draft", r"/drafts/", "drafts"),
            Rule(
                "feed",
                r"\.(?:atom|rss)\.xml$|/feeds/",
                "feeds",
                "https://docs.getpelican.com/en/latest/settings.html#feed-settings",
            ),
        ),
    ),
    Software(
        "nikola",
        "Nikola",
        "https://getnikola.com/handbook.html",
        (
            Rule("tag", r"/categories/(?!cat_)[^/?]+|/tags?/[^/?]+", "the same posts, by tag"),
            Rule("author", r"/authors/", "the same posts, by author"),
            Rule("date", rf"^/(?:[a-z]{{2}}/)?(?:[\w-]+/)?{DAY}/?(?:index\.html)?$", "the same posts, by date"),
            Rule("source", r"\.(?:rst|md|ipynb)$", "raw sources (SHOW_SOURCELINK)"),
            Rule("feed", r"(?:/|\.)(?:rss|atom|feed)(?:\.xml)?$|\.xml$", "feeds"),
        ),
    ),
    Software(
        "hexo",
        "Hexo",
        "https://hexo.io/docs/configuration",
        (
            Rule("tag", r"/tags/[^/?]+", "the same posts, by tag"),
            Rule("date", r"/archives/(?:19|20)\d\d", "the same posts, by date"),
            Rule("feed", r"/(?:atom|rss2?)\.xml$", "feeds", "https://github.com/hexojs/hexo-generator-feed"),
        ),
    ),
)

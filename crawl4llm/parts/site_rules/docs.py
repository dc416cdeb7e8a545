"""Rules for documentation tools: raw sources of pages, searches and alphabetical indexes.

Source code that is shown as pages stays (Sphinx's ``_modules``, Javadoc's ``src-html``): most of it on real sites
scores well, and its comments are on no other page (``python -m benchmarks.site_rules``).
"""

from __future__ import annotations

from typing import Final

from crawl4llm.parts.site_rules.table import Rule, Software

SOFTWARE: Final = (
    Software(
        "sphinx",
        "Sphinx",
        "https://www.sphinx-doc.org/en/master/usage/configuration.html",
        (
            Rule(
                "source",
                r"(?:^|/)_sources/",
                "raw sources of pages (html_copy_source)",
                "https://www.sphinx-doc.org/en/master/usage/configuration.html#confval-html_copy_source",
            ),
            Rule(
                "index",
                r"(?:^|/)(?:genindex(?:-[\w.]+)?|(?:\w+-)?modindex)(?:\.html|/)?(?:\?|$)",
                "alphabetical indexes (html_use_index)",
                "https://www.sphinx-doc.org/en/master/usage/configuration.html#confval-html_use_index",
            ),
            Rule(
                "search",
                r"(?:^|/)search(?:\.html|/)?(?:\?|$)",
                "the form for searches",
                "https://www.sphinx-doc.org/en/master/usage/configuration.html#confval-html_search_language",
            ),
        ),
    ),
    Software(
        "mkdocs",
        "MkDocs",
        "https://www.mkdocs.org/user-guide/configuration/#search",
        (Rule("search", r"(?:^|/)search\.html", "the form for searches"),),
    ),
    Software(
        "javadoc",
        "Javadoc",
        "https://docs.oracle.com/en/java/javase/21/docs/specs/javadoc/organization.html",
        (
            Rule("index", r"/index-(?:files/|all\.html)", "alphabetical indexes"),
            Rule("use", r"/(?:class-use/|package-use\.html)", "where a class is used"),
            Rule(
                "other",
                r"/(?:serialized-form|constant-values|help-doc|search|allclasses-noframe|overview-frame|package-frame)\.html",
                "help, constants and frames",
            ),
        ),
    ),
    Software(
        "doxygen",
        "Doxygen",
        "https://www.doxygen.nl/manual/config.html",
        (
            Rule(
                "index",
                r"/(?:functions|globals|namespacemembers)(?:_\w+)?\.html|-members\.html|/search(?:/|\.php)|/graph_legend\.html",
                "indexes of members, and searches",
            ),
        ),
    ),
    Software(
        "rustdoc",
        "rustdoc",
        "https://doc.rust-lang.org/rustdoc/",
        (Rule("other", r"/(?:help|settings|search)\.html", "help, settings and searches"),),
    ),
    Software(
        "docusaurus",
        "Docusaurus",
        "https://docusaurus.io/docs/blog",
        (
            Rule(
                "list",
                r"/(?:blog|docs)/(?:tags|archive|authors|rss\.xml|atom\.xml)(?:/|$)|/search(?:/|\?|$)",
                "the same posts, by tag, author and date",
            ),
        ),
    ),
)

"""A fetcher: pages of a SQLite file, in its table ``pages (url TEXT PRIMARY KEY, date TEXT, html BLOB)``."""

import sqlite3
from contextlib import closing
from pathlib import Path

from scrapy.http import HtmlResponse, Response

from crawl4llm.base.errors import InputError
from crawl4llm.base.html_tree import HtmlTree, html_links
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.crawl import FetchedWeb, attach_page, lease_of


class SqliteWeb(FetchedWeb):
    """The web of the pages in the file PAGES_DB."""

    def __init__(self, settings):
        super().__init__(settings)
        self.file = settings.get("PAGES_DB", "")
        if not Path(self.file).is_file():
            raise InputError(f"PAGES_DB {self.file} is no file; give a SQLite file with a table of pages")

    def source(self, identity):
        return {**super().source(identity), "description": f"pages of {self.file}"}


class SqliteFetcher:
    """Downloader middleware: answers each request from the file, 404 for a page that it lacks."""

    web = SqliteWeb

    def __init__(self, file):
        self._pages = sqlite3.connect(f"file:{file}?mode=ro", uri=True)

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler.settings["PAGES_DB"])

    def process_request(self, request):
        key = lease_of(request).entry.key
        with closing(self._pages.execute("SELECT date, html FROM pages WHERE url = ?", [key])) as found:
            row = found.fetchone()
        if row is None:
            return Response(request.url, status=404, request=request)
        links = [Link(link.url, *link) for link in html_links(HtmlTree(row[1]), key)]
        attach_page(request, PageRecord(key, key, date=row[0], html=row[1], outlinks=links))
        return HtmlResponse(key, body=row[1], encoding="utf-8", request=request)

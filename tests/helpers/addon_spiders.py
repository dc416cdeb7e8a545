"""Someone else's spiders and components: a test copies this file into a project that knows nothing of crawl4llm.

Each item says what reached a callback or errback. ``site`` is the URL of the site that the test serves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule
from twisted.python.failure import Failure


def item(response: Response, **fields: object) -> dict[str, object]:
    path = response.url.partition("/")[2].partition("/")[2].partition("/")[2]
    return {"path": f"/{path}", "influence": response.meta["influence"], **fields}


class LinksSpider(Spider):
    """Follows all links."""

    name = "links"

    def __init__(self, site: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [f"{site}/"]

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield item(response)
        for link in response.css("a"):
            yield response.follow(link)


class CopiesSpider(LinksSpider):
    """Gives each request the meta of the page on which it was found."""

    name = "copies"

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        yield item(response)
        for link in response.css("a"):
            yield response.follow(link, meta=response.meta)


class RulesSpider(CrawlSpider):
    """A CrawlSpider, with settings of its own."""

    name = "rules"
    rules = (Rule(LinkExtractor(), callback="parse_page", follow=True),)
    custom_settings = {"CONCURRENT_REQUESTS": 8, "DEPTH_LIMIT": 2}  # noqa: RUF012 - as Scrapy has it

    def __init__(self, site: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [f"{site}/"]

    async def parse_page(self, response: Response) -> AsyncIterator[Any]:
        yield item(response)


class ScoresSpider(Spider):
    """Scores and ranks its requests itself."""

    name = "scores"

    def __init__(self, site: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{self.site}/")

    def parse(self, response: Response, **_: Any) -> Iterator[Request]:
        yield self.request("low", meta={"influence_score": 0.1})
        yield self.request("high", meta={"influence_score": 0.9})
        yield self.request("urgent", meta={"influence_score": 0}, priority=5)
        yield self.request("unscored", callback=self.copy_meta)
        yield self.request("wrong", meta={"influence_score": "much"})
        yield self.request("high-too", meta={"influence_score": 0.9})
        yield self.request("data.json", meta={"influence_score": 0.3}, callback=self.read_data)

    def request(self, name: str, callback: Any = None, **kwargs: Any) -> Request:
        return Request(f"{self.site}/{name}", callback or self.nothing, **kwargs)

    def copy_meta(self, response: Response) -> Iterator[Request]:
        yield self.request("from-unscored", meta=response.meta)

    def read_data(self, response: Response) -> Iterator[Request]:
        yield self.request("from-data")

    def nothing(self, response: Response) -> None:
        """The page is only fetched."""


class HostsSpider(Spider):
    """Asks two hosts, as far as the downloader can tell, one of which has all the good pages."""

    name = "hosts"
    custom_settings = {  # noqa: RUF012 - as Scrapy has it
        "CONCURRENT_REQUESTS": 2,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY": 0.2,
    }

    def __init__(self, site: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site
        self.start_urls = [f"{site}/"]

    def parse(self, response: Response, **_: Any) -> Iterator[Request]:
        for host, score in (("bad", 0), ("good", 1)):
            for number in range(4):
                meta = {"download_slot": host, "influence_score": score - number / 10}
                yield Request(f"{self.site}/{host}/{number}", self.nothing, meta=meta)

    def nothing(self, response: Response) -> None:
        """The page is only fetched."""


class EverythingSpider(Spider):
    """Does with requests what can be done with them."""

    name = "everything"
    custom_settings = {  # noqa: RUF012 - as Scrapy has it
        "SPIDER_MIDDLEWARES": {"theirs.spiders.theirs.OwnSpiderMiddleware": 543},
        "ITEM_PIPELINES": {"theirs.spiders.theirs.OwnPipeline": 300},
        "RETRY_TIMES": 1,
    }

    def __init__(self, site: str, refused: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.site = site
        self.refused = refused

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{self.site}/", cb_kwargs={"note": "start"}, meta={"mine": [1, 2]})

    def parse(self, response: Response, note: str = "") -> Iterator[Any]:
        yield item(response, note=note, mine=response.meta["mine"])
        for body in (b"q=1", b"q=2", b"q=2"):
            meta, kwargs = {"mine": {"body": body.decode()}}, {"note": f"posted {body.decode()}"}
            yield self.request("/form", method="POST", body=body, meta=meta, cb_kwargs=kwargs)
        yield self.request("/twice")
        yield self.request("/twice")
        yield self.request("/again", dont_filter=True)
        yield self.request("/again", dont_filter=True)
        yield self.request("/head", method="HEAD")
        for path in ("/moved", "/flaky", "/broken", "/missing", "/private", "/picture", "/text", "/thin"):
            yield self.request(path, meta={"mine": path}, cb_kwargs={"note": f"asked for {path}"})
        yield Request(self.refused, self.after, errback=self.failed, cb_kwargs={"note": "refused"})

    def request(self, path: str, **kwargs: Any) -> Request:
        return Request(f"{self.site}{path}", self.after, errback=self.failed, **kwargs)

    def after(self, response: Response, note: str = "") -> Iterator[Any]:
        assert response.request is not None
        yield item(
            response,
            note=note,
            mine=response.meta.get("mine"),
            method=response.request.method,
            size=len(response.body),
            own=response.meta.get("own"),
        )

    def failed(self, failure: Failure) -> Iterator[Any]:
        request: Request = failure.request  # type: ignore[attr-defined]  # Scrapy sets it
        note = request.cb_kwargs["note"]
        yield {"failed": type(failure.value).__name__, "note": note, "mine": request.meta.get("mine")}
        if request.url.endswith("/missing"):
            yield self.request("/instead", cb_kwargs={"note": "from an errback"})


class OwnSpiderMiddleware:
    """Marks all requests of the spider, and adds one."""

    def __init__(self, spider: EverythingSpider) -> None:
        self.spider = spider

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> OwnSpiderMiddleware:
        assert isinstance(crawler.spider, EverythingSpider)
        return cls(crawler.spider)

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for each in result:
            if isinstance(each, Request):
                each.meta["own"] = "middleware"
            yield each
        if response.url == f"{self.spider.site}/":
            yield self.spider.request("/added")


class OwnPipeline:
    """Marks all items."""

    def process_item(self, item: dict[str, object]) -> dict[str, object]:
        return {**item, "piped": True}

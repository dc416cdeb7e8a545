"""A Scrapy extension: writes the mean influence score of the pages so far into means.csv, after each iteration."""

from pathlib import Path

from crawl4llm.engine.scheduler import iteration_done


class Means:
    """Receiver of the signal iteration_done."""

    @classmethod
    def from_crawler(cls, crawler):
        extension = cls()
        crawler.signals.connect(extension.log, signal=iteration_done)
        return extension

    def log(self, crawl):
        with Path("means.csv").open("a") as file:
            print(crawl.iteration, crawl.crawled, crawl.statistics()["influence/mean"], sep=",", file=file)

"""Engine: how Scrapy drives a crawl."""

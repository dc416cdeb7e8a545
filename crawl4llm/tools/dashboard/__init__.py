"""``scrapy dashboard``: a crawl as a page in the browser, while it runs and afterwards.

``watch`` reads the crawl's folder, and makes of the points of its series what the page draws; ``child`` reads what can
hang or end a process, in one of its own; ``server`` serves it all, and the files of ``page/``, to this machine only.
"""

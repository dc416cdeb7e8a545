"""Engine: how Scrapy drives a crawl.

- ``run``: opens all parts of a crawl, and closes them.
- ``components``: the Scrapy add-ons by which each profile gets its components.
- ``webs``: finds the web of the settings, and lets other spiders visit it.
- ``scheduler``: hands out the documents that Algorithm 1 takes from the frontier.
- ``progress``, ``summary``, ``live_logging``: displays of a crawl, during it and at its end.
- ``series``, ``metrics``, ``logs``: data for the dashboard, for Prometheus and for readers of logs.
- ``settings``: settings, of Scrapy and this project, that have no effect in a crawl; those of a past run.
- ``profiles``: the settings of ``crawl4llm live`` and ``simulate``; ``start_checks``: the checks before a crawl.
- ``dry_run``: estimates time and space of a crawl from a short one.

The spider is where Scrapy looks for it, in ``crawl4llm/spiders``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

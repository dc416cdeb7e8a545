"""Engine: how Scrapy drives a crawl.

- ``run``: opens all parts of a crawl, and closes them.
- ``components``: the Scrapy add-ons by which each profile gets its components.
- ``webs``: finds the web that the settings are for, and lets others than our spider visit it.
- ``scheduler``: hands out what Algorithm 1 takes from the frontier.
- ``progress``, ``summary``, ``live_logging``: what is shown of a crawl, while it runs and at its end.
- ``series``, ``metrics``, ``logs``: what a crawl tells the dashboard, Prometheus, and whoever reads or collects logs.
- ``settings``: settings of Scrapy's, and of ours, that do not hold in a crawl; those of a past run.
- ``profiles``: the settings of ``crawl4llm live`` and ``simulate``; ``before``: what is wrong before a crawl.
- ``dry_run``: estimates what a crawl would take from a short one.

The spider is where Scrapy looks for it, in ``crawl4llm/spiders``.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

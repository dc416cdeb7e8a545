"""The report of an evaluation on disk: ``report.html``, and the same numbers and plots as files of their own.

``write_report`` is what an evaluation uses; the other modules are its parts, one idea each: ``data`` turns numbers into
CSV and JSON, ``plot`` draws a figure with the ``marks`` of its series, ``thinning`` leaves out what cannot be seen of
them, ``colours`` has their colours in light and dark, ``comparison`` puts runs side by side, ``page`` makes the HTML.
"""

from crawl4llm.tools.evaluate.report.write import check_installed, write_report

__all__ = ["check_installed", "write_report"]

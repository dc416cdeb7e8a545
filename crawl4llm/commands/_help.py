"""The form of `--help`, shared by commands whose help ends with examples."""

from __future__ import annotations

from scrapy.commands import ScrapyHelpFormatter


class HelpFormatter(ScrapyHelpFormatter):
    """Scrapy's, but that a text of several lines keeps them."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)

"""The form of `--help`, shared by commands whose help ends with examples or has lines that end with a colon."""

from __future__ import annotations

from scrapy.commands import ScrapyHelpFormatter


class HelpFormatter(ScrapyHelpFormatter):
    """Scrapy's, but that a text of several lines keeps them, and that no line of an option's help becomes a heading."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)

    def format_part_strings(self, part_strings: list[str]) -> list[str]:
        # Scrapy takes each part that ends with a colon for a heading, lines of help too. Headings follow an empty part.
        first = "".join(part_strings[:1])
        has_heading = first == "\n" or first.startswith("usage: ")
        return super().format_part_strings(part_strings) if has_heading else part_strings

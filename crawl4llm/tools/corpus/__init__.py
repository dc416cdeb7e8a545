"""What ``scrapy corpus`` can do: one module for each action.

To add one: a module here that has what :class:`crawl4llm.tools._action.Action` says, and its name in ``ACTIONS``.
"""

from __future__ import annotations

from typing import Final

ACTIONS: Final = ("show", "sample", "index", "demo", "build", "ranks")

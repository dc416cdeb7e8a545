"""A report with everything that can be in one, hostile names and undefined values included."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from crawl4llm.tools.evaluate.figures import Figure, Report, Series, Table

HOSTILE = "</script></title><script>hacked = 1</script><img src=x onerror='hacked = 1'>\"&amp; $x_1$ 日本 \x00\udc80"
"""A run's name, or a setting, that tries to get out of wherever it is put."""

LONG = "crawls/" + "long-name/" * 40

OF_NUMPY: Any = (np.array([0, 100]), np.array([0.05, math.nan], dtype=np.float32), np.int64(4400))

FIGURES = [
    Figure(
        "recall",
        "Recall of the oracle",
        "The share of the oracle set that is crawled (Craw4LLM, figure 4).",
        "pages crawled",
        "recall",
        [
            Series("theoretical bound", [0, 50, 100], [0, 0.5, 1], kind="dashed"),
            Series(
                "influence", [0, 25, 50, 75, 100], [0, 0.3, None, 0.6, 0.7], [0, 0.2, 0, 0.5, 0.6], [0, 0.4, 1, 0.7, 1]
            ),
            Series(HOSTILE, [10, 90], [0.1, 0.2]),
            Series(LONG, [50], [0.25]),
            Series("empty", [], []),
            Series("of NumPy", OF_NUMPY[0], OF_NUMPY[1]),
        ],
    ),
    Figure(
        "cloud",
        "Influence by in-degree " + HOSTILE,
        HOSTILE,
        "in-degree",
        "influence",
        [
            Series("all", [0, 1, 2, 1000], [0.5, 0.0, 0.7, 0.9], kind="points"),
            Series("oracle", [3, 4], [1.0, 0.99], kind="points"),
        ],
        x_log=True,
        y_log=True,
    ),
    Figure(
        "backlinks",
        "Backlinks",
        "How many pages have so many.",
        "backlinks",
        "pages",
        [
            Series("all", [0, 1, 2, 5], [900, 100, 10, 0], kind="points"),
        ],
    ),
    Figure("nothing", "Nothing", "No run has it.", "x", "y", [Series("run", [1, 2], [None, math.nan])], y_log=True),
]

RUNS_TABLE = Table(
    "harvest",
    "Oracle pages per page fetched",
    "Counted at the end of each run.",
    ["run", "pages", "recall", "note"],
    [
        ["run 10", 6500, 0.2311, None],
        ["run 9", 21599, 0.1 + 0.2, HOSTILE],
        [HOSTILE, 100, None, "interrupted"],
        ["run 1", OF_NUMPY[2], math.inf, "a"],
    ],
)

REPORT = Report(
    "Two crawls " + HOSTILE,
    ["66.3% of the pages can be reached.", HOSTILE],
    [
        FIGURES[0],
        RUNS_TABLE,
        *(replace(figure, part="More figures") for figure in FIGURES[1:]),
        Table("no-rows", "No rows", "Of an empty run.", ["run", "pages"], [], part="Folded " + HOSTILE),
    ],
    [
        {
            "name": HOSTILE,
            "policy": "influence",
            "settings": {"CRAWL_SEED": 0, "WARC_PREFIX": HOSTILE},
            "extra": [1, 2],
        },
        {"name": "b", "policy": "random", "settings": {"CRAWL_SEED": 0, "WARC_PREFIX": HOSTILE}},
    ],
    ["influence is best: 2.65 times as much.", HOSTILE],
)

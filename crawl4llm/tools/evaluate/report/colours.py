"""The colours of plots, in light and dark.

Plots are drawn in the light colours. A style sheet replaces each by its dark counterpart where the reader's system is
set to dark (``prefers-color-scheme``, Media Queries Level 5), so that the same SVG serves both, and a viewer that knows
nothing of style sheets shows the light one.
"""

from __future__ import annotations

from typing import Final

BACKGROUND: Final = "#ffffff"
TEXT: Final = "#1f2328"
AXIS: Final = "#6e7781"
GRID: Final = "#e1e5ea"
SERIES: Final = ("#0b66c3", "#bf5000", "#14794a", "#b02a8c", "#7a5f00", "#6a43c4", "#007a87", "#59636e")
"""By order in the figure. Each has a contrast of at least 4.5 to 1 with its background, the dark ones too."""

_DARK: Final = {
    BACKGROUND: "#14171b",
    TEXT: "#e6e9ec",
    AXIS: "#8c959f",
    GRID: "#2b3138",
    **dict(
        zip(
            SERIES,
            ("#62aeff", "#ff9a4d", "#4fcf8f", "#f08cd0", "#dcbf45", "#b79cff", "#48cbd8", "#a7b1bc"),
            strict=True,
        )
    ),
}


def dark_plots() -> str:
    """The rules that make plots dark; they stand inside a media query."""
    return "\n".join(
        f'svg.plot [style*="{part}: {light}"] {{ {part}: {dark} !important }}'
        for light, dark in _DARK.items()
        for part in ("fill", "stroke")
    )


def plot_style() -> str:
    """The style sheet of a plot that is a file of its own."""
    return (
        ":root { color-scheme: light dark }\n"
        "svg.plot text { font-family: system-ui, sans-serif !important }\n"
        f"@media (prefers-color-scheme: dark) {{\n{dark_plots()}\n}}"
    )

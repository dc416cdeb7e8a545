"""Writes the report of an evaluation: ``report.html``, and the same numbers and plots as files of their own.

``data`` turns numbers into CSV and JSON, ``plot`` draws figures, ``page`` makes the HTML.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from crawl4llm.base.errors import InputError
from crawl4llm.base.installed import to_install
from crawl4llm.tools.evaluate.figures import Figure, Report
from crawl4llm.tools.evaluate.report.data import plain_report, report_json, section_csv


def check_installed() -> None:
    """Raise InputError if a library that an evaluation needs is missing."""
    if any(find_spec(name) is None for name in ("duckdb", "jinja2", "matplotlib", "scipy")):
        raise InputError(f"an evaluation needs DuckDB, Matplotlib, Jinja2 and SciPy; {to_install('evaluate')}")


def write_report(report: Report, directory: Path) -> list[Path]:
    """Write ``report.html``, ``report.json``, ``figures/ID`` as SVG, PDF and PNG, ``data/ID.csv``; return their paths.

    An earlier report there is overwritten. The same report gives the same bytes. Raises InputError if the directory
    cannot be written or a library is missing, and ValueError as ``plain_report`` does.
    """
    check_installed()
    # extras, which check_installed() has named
    from crawl4llm.tools.evaluate.report.page import render
    from crawl4llm.tools.evaluate.report.plot import draw_files, stand_alone

    report = plain_report(report)
    drawn = {section.id: draw_files(section) for section in report.sections if isinstance(section, Figure)}
    plots = {name: svg for name, (svg, _) in drawn.items()}
    texts: dict[str, str | bytes] = {
        "report.html": render(report, plots),
        "report.json": report_json(report),
        **{f"figures/{name}.svg": stand_alone(svg) for name, svg in plots.items()},
        **{f"figures/{name}.{suffix}": data for name, (_, files) in drawn.items() for suffix, data in files.items()},
        **{f"data/{section.id}.csv": section_csv(section) for section in report.sections},
    }
    return [_write(directory / name, text) for name, text in texts.items()]


def _write(path: Path, content: str | bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    return path

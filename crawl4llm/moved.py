"""The table of modules that moved since 0.1.0: names that users hold import the new module, others say where it is.

What profiles, docs and docstrings of 0.1.0 name for users keeps working, with a DeprecationWarning; so does a JOBDIR or
a ``settings.json`` that records such a path.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from types import CodeType, ModuleType
from typing import Any, Final

_HELD: Final = (
    *("errors", "live.redirecting", "live_logging", "progress", "reference", "scheduler", "scorers"),
    "stats",
)
"""What users hold, with its children, of ``crawl4llm``; and ``simulate.corpus``."""
_MOVED: Final = {
    ("crawl4llm.", "crawl4llm.base."): """
        errors urls domains links=html_links opt_out=domains capture=pages arguments=terminal terminal bars
        markdown=terminal input_files open_files=input_files within output=run_folder crawl_log stats
        whole_folder=files archive.appendfile=files archive.compress=compression""",
    ("simulate.", "crawl4llm.base."): """
        corpus=pages pread=input_files gz=compression orphans=processes index_jobs=processes index_folder=files""",
    ("crawl4llm.", "crawl4llm."): """
        job/=crawl archive/=warc archive.headervalues=warc.page_records archive.records=warc.page_records
        archive.serialise=warc.page_records archive.files=warc.series archive.names=warc.series
        archive.revisits=warc.exchanges dataset.reading=warc.reader
        scorers/=scoring scorers.text_line=scoring.fasttext_scorer archive.urlkey=warc.cdxj""",
    ("simulate.warc_", "crawl4llm.warc."): """
        frames=records gzip plain zstd whole_gzip=gzip container=reader records payload wat=payload reader""",
    ("crawl4llm.", "crawl4llm.scoring."): """
        rating html_rating=rating page_ratings=workers text topic workers normalisers""",
    ("crawl4llm.", "crawl4llm.policies."): """
        ordering*=_ordering learning*=_learning learning.means=_means seen_links=_seen_links seen_graph=_seen_graph
        page_by_page=_seen_links scorer_policy=_scorer_policy harmonic_ranks=harmonic draws=random_static""",
    ("crawl4llm.", "crawl4llm.frontier."): """
        visited* visited.bloom=bloom visited.fingerprints=fingerprints frontier.records=runs job.store=store""",
    ("crawl4llm.", "crawl4llm.crawl."): """
        job.answers=answer_spool job.check=store_check job.commits=commits seeds archiving=page_writer
        requests=reorder_buffer outstanding=reorder_buffer recorder=page_writer scope tally=page_writer commits
        frontier_actions.stored_crawl=stored_crawl""",
    ("crawl4llm.", "crawl4llm.engine."): """
        run scheduler progress summary dry_run past_runs scrapy_settings live_logging/
        live_logging.extension=live_logging""",
    ("crawl4llm.", "crawl4llm.addon."): """
        addon_meta=meta addon_run=run page_scoring=middlewares page_recording=middlewares link_scoring=middlewares
        request_scheduler""",
    ("crawl4llm.live.", "crawl4llm.live."): "redirecting=middlewares reasons=verdicts",
    ("crawl4llm.", "crawl4llm.tools."): """
        evaluation/=evaluate exporting/=export training/=trainscorer dataset/=archive
        archive_actions/=archive corpus_actions/=corpus frontier_actions/=frontier explain
        action_command=_action""",
    ("crawl4llm.evaluation.", "crawl4llm.tools.evaluate."): """
        report/ report.colours=report.plot report.comparison=report.data report.marks=report.plot
        report.thinning=report.plot report.write=report along=measures arrays=documents correlation=correlations
        importance=measures population=measures selection=measures subject=survey sections/=figures
        sections.common=figures sections.correlations=correlations sections.coverage=coverage sections.ordering=ordering
        sections.overview=overview sections.selecting=coverage""",
    ("crawl4llm.evaluation.", "crawl4llm.scoring."): "blocks=passes page_tasks=text passes",
    ("crawl4llm.training.", "crawl4llm.tools.trainscorer."): "folder=train page_texts=sources plot=card recipe=fit",
    ("crawl4llm.dataset.", "crawl4llm.tools.archive."): """
        checking=check checking_index=check checksums=clueweb12 digests=survey finishing=finish jobs=folder
        purging=purge purging_exports=purge repairing=repair revisits=rewrite rewrite_files=rewrite
        rewriting=rewrite selecting=rewrite warcinfo=clueweb12""",
    ("crawl4llm.exporting.", "crawl4llm.tools.export."): """
        hashed_file=formats json_lines=rows line_files=archive_source near_duplicates=selecting
        oracle=selecting table=rows wanted=selecting warc_source=sources words=shards""",
    ("crawl4llm.corpus_actions.", "crawl4llm.tools.corpus."): "demo=build index=build sample=show",
    ("crawl4llm.frontier_actions.", "crawl4llm.tools.frontier."): "compact=change inject=change",
    ("crawl4llm.", "crawl4llm.commands."): "reference",
    ("simulate.", "simulate.clueweb22."): "record_files url_index url_index_build=url_index",
    ("simulate.clueweb22_", "simulate.clueweb22."): """
        layout=record_parser listing=record_files records=record_parser writer=tree_writer""",
    ("simulate.warc_", "simulate.warcs."): "columns failures=files files index index_build part scan tables=columns",
    ("simulate.build_", "simulate.build."): "files=data_files links=data_files manifest=plan pages=chunks plan pool",
    ("simulate.", "simulate."): "harmonic=build.centrality demo_web*=demo",
}
"""By the beginnings of old and new names, how both end; ``/``: a package, whose other modules follow it;
``*``: a package that is one module now, with what was in its other modules."""
OBJECTS: Final = {
    "crawl4llm.crawl.Crawl": "crawl4llm.crawl.crawl",
    "simulate.build.build_tree": "simulate.build.tree",
    "simulate.clueweb22.ClueWeb22Corpus": "simulate.clueweb22.corpus",
    "simulate.demo.ensure_demo": "simulate.demo.demo",
    "simulate.warcs.WarcCorpus": "simulate.warcs.corpus",
}
"""What was in modules of whose names there are packages now."""

_ENDS: Final = [(old, new, *word.partition("=")[::2]) for (old, new), words in _MOVED.items() for word in words.split()]
_NEW: Final = {(old + end).rstrip("/*"): (new + (new_end or end)).rstrip("/*") for old, new, end, new_end in _ENDS}
_PACKAGES: Final = {(old + end)[:-1]: end[-1] for old, _, end, _ in _ENDS if end[-1] in "/*"}


def new_path(path: str) -> str:
    """Return the dotted path with the new name of a module that has moved; any other as it is."""
    if path in _NEW:
        return _NEW[path]
    above, _, name = path.rpartition(".")
    if _PACKAGES.get(above) == "*":
        return _NEW[above]
    return f"{new_path(above)}.{name}" if above else path


def moved_objects(package: str) -> Callable[[str], Any]:
    """Return a package's ``__getattr__``, which says where to find what a module of its name held."""

    def missing(name: str) -> Any:
        place = OBJECTS.get(f"{package}.{name}") or ("" if name.startswith("__") else _NEW.get(package))
        if place:
            raise ModuleNotFoundError(f"{package}.{name} has moved: it is in {place}", name=package)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return missing


class _Finder(MetaPathFinder, InspectLoader):
    """Finds old names; asked first, since a package imported by its old name has the folder of the new one."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        new = new_path(name)
        if new == name:
            return None
        held, package = _is_held(name), name in _PACKAGES
        if not held and not package:
            raise ModuleNotFoundError(f"{name} has moved: it is {new}", name=name)
        found = find_spec(new) if held else None
        return spec_from_loader(name, self, origin=found.origin if found else None, is_package=package)

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if _is_held(name):
            warnings.warn(f"{name} has moved: it is {new_path(name)}", DeprecationWarning, stacklevel=2)
            sys.modules[name] = import_module(new_path(name))
        else:  # an empty package, so that the line tells of the module in it that is asked for
            module.__getattr__ = moved_objects(name)  # type: ignore[method-assign]

    def get_code(self, name: str) -> CodeType | None:
        """Return the code of the new module, for ``python -m``."""
        found = find_spec(new_path(name))
        return found.loader.get_code(found.name) if found and isinstance(found.loader, InspectLoader) else None

    def get_source(self, fullname: str) -> None:
        """Not needed."""


def _is_held(name: str) -> bool:
    held = ("simulate.corpus", *(f"crawl4llm.{end}" for end in _HELD))
    return any(name == one or name.startswith(f"{one}.") for one in held)


def install() -> None:
    """Make the old names known to Python's import."""
    sys.meta_path.insert(0, _Finder())

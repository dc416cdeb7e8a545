"""What users of 0.1.0 hold keeps working: the dotted paths of its modules, its profiles."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from addon_site import serve
from crawl_helpers import PROJECT, Web, crawl_args, crawl_log, error_of, scrapy
from live_helpers import live_args, small_web

from crawl4llm.moved import OBJECTS, new_path

MODULES_OF_0_1_0 = {
    "crawl4llm": """
        action_command addon addon_meta addon_run archive archive_actions archiving arguments bars capture
        commands commits corpus_actions crawl crawl_log dataset domains draws dry_run errors evaluation
        explain exporting frontier frontier_actions harmonic_ranks html_rating input_files job learning
        link_scoring links live live_logging markdown normalisers open_files opt_out option_checks options
        ordering output outstanding page_by_page page_ratings page_recording page_scoring past_runs policies
        progress rating recorder reference request_scheduler requests run scheduler scope scorer_policy
        scorers scrapy_settings seeds seen_graph seen_links spiders stats summary tally terminal text topic
        training urls visited whole_folder within workers""",
    "crawl4llm.archive": """
        appendfile cdxj compress exchanges files headervalues http_messages names reader records revisits
        serialise series urlkey writer""",
    "crawl4llm.archive_actions": "check finish purge repair",
    "crawl4llm.commands": "archive corpus crawl evaluate explain export frontier trainscorer",
    "crawl4llm.corpus_actions": "build demo index ranks sample show",
    "crawl4llm.dataset": """
        changes checking checking_index checksums copying digests facts finishing folder jobs lines purging
        purging_exports reading repairing revisits rewrite_files rewriting selecting survey wacz warcinfo""",
    "crawl4llm.evaluation": """
        along arrays blocks buffer correlation documents evaluate figures graph importance page_tasks passes
        population report runs sections selection subject survey""",
    "crawl4llm.evaluation.report": "colours comparison data marks page plot thinning write",
    "crawl4llm.evaluation.sections": "common correlations coverage ordering overview selecting",
    "crawl4llm.exporting": """
        archive_source card export folder formats hashed_file json_lines line_files near_duplicates oracle
        preparing reading rows selecting shards sources table wanted warc_source words""",
    "crawl4llm.frontier": "durable indexed memory records runs",
    "crawl4llm.frontier_actions": "compact export inject purge show stored_crawl verify",
    "crawl4llm.job": "answers check commits job jobdir store",
    "crawl4llm.learning": "features learner means ranks waiting",
    "crawl4llm.live": "capturing fetching reasons redirecting robots stopping web wire",
    "crawl4llm.live_logging": "extension tensorboard_logger wandb_logger",
    "crawl4llm.ordering": "ascending hot_queue lift wrapper",
    "crawl4llm.policies": """
        backlink breadth_first ensemble harmonic host indegree influence length link pagerank parent_first
        parent_mean parent_min random random_static""",
    "crawl4llm.scorers": "fasttext_file fasttext_scorer length model_rules text_line",
    "crawl4llm.spiders": "influence",
    "crawl4llm.training": "card examples fit folder measures page_texts plot recipe sources text_files train",
    "crawl4llm.visited": "bloom durable fingerprints memory",
    "simulate": """
        build build_files build_links build_manifest build_pages build_plan build_pool clueweb22
        clueweb22_layout clueweb22_listing clueweb22_records clueweb22_writer corpus demo demo_web gz
        harmonic index_folder index_jobs middleware open orphans pread record_files url_index
        url_index_build warc_columns warc_container warc_failures warc_files warc_frames warc_gzip
        warc_index warc_index_build warc_part warc_payload warc_plain warc_reader warc_records warc_scan
        warc_tables warc_wat warc_whole_gzip warc_zstd warcs""",
    "simulate.demo_web": """
        build content english figures foreign links markup model pages planning sentences sites streams
        texts traits tree web words""",
}
"""By package."""
OLD = [f"{package}.{name}" for package, names in MODULES_OF_0_1_0.items() for name in names.split()]
HELD = [
    *("crawl4llm.scheduler.InfluenceScheduler", "crawl4llm.progress.Progress", "crawl4llm.stats.PREFIX"),
    *("crawl4llm.live_logging.extension.LiveLogging", "crawl4llm.addon.Addon", "crawl4llm.live.stopping.Stopping"),
    *("crawl4llm.live.fetching.Fetching", "crawl4llm.live.robots.Robots", "crawl4llm.live.redirecting.Redirecting"),
    *("crawl4llm.live.capturing.Capturing", "crawl4llm.live.wire.WireHandler", "crawl4llm.policies.BasePolicy"),
    *("crawl4llm.policies.Rating", "simulate.corpus.Corpus", "simulate.corpus.PageRecord", "simulate.corpus.Link"),
    *("crawl4llm.scorers.fasttext_scorer.FastTextScorer", "crawl4llm.scorers.length.LengthScorer"),
    *("crawl4llm.scorers.Scorer", "crawl4llm.errors.InputError", "crawl4llm.errors.MissingRecord"),
    *("crawl4llm.options.Options", "crawl4llm.commands.crawl.Command", "crawl4llm.reference.pages"),
    "simulate.middleware.SimulationMiddleware",
]
"""What its profiles, docs and docstrings name for users."""


def is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def test_each_module_of_0_1_0_is_imported_or_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = [f"{old}: {new}" for old in OLD if not is_there(new := new_path(old))]
    assert lost == [], "the table of crawl4llm/moved.py is to be amended"
    for old in OLD:
        new = new_path(old)
        if new == old:
            continue
        monkeypatch.delitem(sys.modules, old, raising=False)
        line = rf"^{re.escape(old)}(\.anything)? has moved: it is (in )?{re.escape(new)}$"
        if any(path.startswith(f"{old}.") for path in HELD):
            with pytest.warns(DeprecationWarning, match=line):
                assert import_module(old) is import_module(new)
        elif not old.startswith(("crawl4llm.live_logging", "crawl4llm.scorers")):
            with pytest.raises(ModuleNotFoundError, match=line):
                exec(f"from {old} import anything")


@pytest.mark.parametrize("path", HELD)
def test_what_users_hold_is_the_same_class(path: str) -> None:
    old, _, name = path.rpartition(".")
    assert getattr(import_module(old), name) is getattr(import_module(new_path(old)), name)


@pytest.mark.parametrize(("old", "new"), OBJECTS.items())
def test_what_a_module_held_whose_name_is_a_package_now(old: str, new: str) -> None:
    package, _, name = old.rpartition(".")
    with pytest.raises(ImportError, match=f"^{re.escape(old)} has moved: it is in {re.escape(new)}$"):
        getattr(import_module(package), name)
    assert hasattr(import_module(new), name)
    assert not hasattr(import_module(package), "nothing")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose profiles are those of 0.1.0."""
    shutil.copytree(PROJECT / "tests/helpers/profiles_0_1_0", tmp_path / "settings")
    shutil.copy(PROJECT / "scrapy.cfg", tmp_path)
    return tmp_path


def test_profiles_of_0_1_0_simulate(project: Path, demo_web: Web) -> None:
    """Also when the crawl is resumed whose JOBDIR names a scorer by its old path."""
    env = {"PYTHONPATH": str(project), "PYTHONWARNINGS": "ignore"}
    length = {"SCORER": "crawl4llm.scorers.length.LengthScorer", "JOBDIR": project / "job", "CRAWL_SEEDS": 10}
    for pages in (10, 20):
        args = crawl_args(demo_web, project / "run", CRAWL_MAX_PAGES=pages, CRAWL_BATCH_SIZE=10, **length)
        result = scrapy(*args, env=env, cwd=project)
        assert result.returncode == 0, result.stderr
        assert len(crawl_log(project / "run")) == pages
    result = scrapy(*crawl_args(demo_web, project / "other", SCORER="crawl4llm.topic.Topic"), env=env, cwd=project)
    assert "(crawl4llm.topic has moved: it is crawl4llm.scoring.topic)" in error_of(result)


def test_profiles_of_0_1_0_crawl_a_web(project: Path) -> None:
    env = {"PYTHONPATH": str(project), "PYTHONWARNINGS": "ignore", "SCRAPY_PROJECT": "live"}
    with serve(small_web()) as site:
        args = live_args([f"{site.url}/page-0"], project / "run", CRAWL_MAX_PAGES=10)
        result = scrapy(*args, env=env, cwd=project)
    assert result.returncode == 0, result.stderr
    assert len(crawl_log(project / "run")) == 10


def test_the_reference_is_printed_by_its_old_name() -> None:
    code = "import runpy, sys; sys.argv[1:] = []; print(runpy.run_module('crawl4llm.reference')['__file__'])"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()) == PROJECT / "crawl4llm/commands/reference.py"

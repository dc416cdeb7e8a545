"""What a received run folder says is data: no code runs because its settings.json names it."""

from __future__ import annotations

import json
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import PROJECT, Web, crawl, crawl_log, error_of, scrapy
from scrapy.settings import Settings

from crawl4llm.base.errors import InputError
from crawl4llm.crawl.web import load_scorers
from crawl4llm.engine.settings import take_over
from crawl4llm.options import Options, read_options, setting_name
from crawl4llm.policies import load_policy
from crawl4llm.scoring import load_scorer
from crawl4llm.tools.evaluate.evaluate import Wanted as Evaluated, evaluate
from crawl4llm.tools.explain import explain
from crawl4llm.tools.export.export import export
from crawl4llm.tools.export.filters import Wanted
from crawl4llm.tools.export.selecting import oracle_threshold
from crawl4llm.tools.frontier.change import INJECT
from simulate import open_corpus

MODULE = "received_code"
DOTTED = [f"{MODULE}.Scorer", f"scorer:{MODULE}.Scorer", f"{MODULE}.Scorer:1", f"fasttext:0.5, {MODULE}.Scorer:1.5"]
CODE = """
from crawl4llm.scoring.length import LengthScorer as Scorer
open({path!r}, "w").close()
"""


@pytest.fixture(scope="module")
def crawled(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run and its JOBDIR."""
    folder = tmp_path_factory.mktemp("received")
    settings = {"CRAWL_MAX_PAGES": 20, "CRAWL_SEEDS": 10, "SCORER": "length", "JOBDIR": folder / "job"}
    assert crawl(demo_web, folder / "run", **settings).returncode == 0
    return folder


@pytest.fixture
def received(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with code that leaves a trace when it is imported."""
    folder = tmp_path / "received"
    folder.mkdir()
    (folder / f"{MODULE}.py").write_text(CODE.format(path=str(folder / "imported")))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return folder


@pytest.fixture
def run(crawled: Path, received: Path) -> Path:
    """The run in that folder, which a test may change."""
    shutil.copytree(crawled, received, dirs_exist_ok=True)
    return received / "run"


def set_in(run: Path, **values: object) -> dict[str, Any]:
    """Change what a run's settings.json says; returns what it says then."""
    facts: dict[str, Any] = json.loads((run / "settings.json").read_text())
    facts["settings"].update(values)
    (run / "settings.json").write_text(json.dumps(facts))
    return facts


@pytest.mark.parametrize("option", fields(Options), ids=setting_name)
def test_no_setting_out_of_data_is_imported(option: Field[Any], received: Path) -> None:
    """Runs over the whole table: a setting that will take dotted paths later fails here until it is marked."""
    name, refused = setting_name(option), []
    for value in DOTTED:
        settings = Settings({"SCORER": "length"})
        try:
            take_over(settings, {"settings": {name: value}}, "run")
            options = read_options(settings)
            load_scorer(options)
            load_scorers(load_policy(options.url_policy).scorers(options), options)
            open_corpus(settings)
        except InputError as error:
            refused.append(str(error))
        assert not (received / "imported").exists(), value
    if option.metadata["imports"] is not None:
        assert any(f"give it too: -s {name}={MODULE}.Scorer" in line for line in refused)


COMMANDS: dict[str, Callable[[Settings, Path], object]] = {
    "explain": lambda settings, run: list(explain(settings, crawl_log(run)[0]["id"], str(run))),
    "evaluate": lambda settings, run: evaluate(settings, [run], Evaluated(sample=5)),
    "export": lambda settings, run: list(export(settings, [str(run)], run.parent / "out", Wanted())),
    "oracle": lambda settings, run: oracle_threshold(settings, [run]),
    "inject": lambda settings, run: list(
        INJECT.run(settings, Namespace(arguments=[run.parent / "job", run / "seeds.txt"]))
    ),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_each_command_refuses_code_out_of_data(command: Callable[[Settings, Path], object], run: Path) -> None:
    value = f"{MODULE}.Scorer"
    set_in(run, SCORER=value)
    with pytest.raises(InputError) as refused:
        command(Settings({"OUTPUT_DIR": str(run)}), run)
    assert str(refused.value).startswith(f"{run}: SCORER = {value!r} in settings.json is the path of code")
    assert str(refused.value).endswith(f"-s SCORER={value}")
    assert not (run.parent / "imported").exists()


def test_code_runs_that_the_user_names(received: Path, run: Path) -> None:
    """In settings of one's own, or on the command line; another value there counts instead of the run's."""
    value = f"{MODULE}.Scorer"
    set_in(run, SCORER=value, URL_POLICY="scorer:length", ENSEMBLE_WEIGHTS="fasttext:1,length:0.5")
    shutil.copy(PROJECT / "scrapy.cfg", received)
    args = ("explain", crawl_log(run)[0]["id"], "--run", str(run))
    assert f"SCORER = {value!r}" in error_of(scrapy(*args, cwd=received))
    assert scrapy(*args, "-s", "SCORER=length", cwd=received).returncode == 0
    assert not (received / "imported").exists()
    result = scrapy(*args, "-s", f"SCORER={value}", cwd=received)
    assert result.returncode == 0, result.stderr
    assert (received / "imported").exists()
    COMMANDS["explain"](Settings({"SCORER": value}, priority="project"), run)


@pytest.mark.parametrize("values", [[], "SCORER", 5])
def test_settings_that_are_none(values: object) -> None:
    with pytest.raises(InputError, match=r"^run: settings\.json is damaged"):
        take_over(Settings(), {"settings": values}, "run")

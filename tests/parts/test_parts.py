"""Parts of a crawl: asked for or not even imported, declared in one way, called in one order, and somebody else's."""

from __future__ import annotations

import ast
import gzip
import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import PROJECT, Web, crawl, crawl_log, error_of, scrapy, stats
from driven_crawl import Driven
from graph_corpus import GraphCorpus
from own_parts import ENOUGH, LATER, PAGES, Noting, one_in

from crawl4llm import parts
from crawl4llm.base import reasons
from crawl4llm.base.errors import InputError
from crawl4llm.base.stats import KEYS
from crawl4llm.options import Options
from crawl4llm.parts import ALONE, EVERYWHERE, ORDER, Part, load_part, open_parts
from crawl4llm.parts.part import CONTINUOUS, Declaration

ASKED_FOR: dict[str, dict[str, object]] = {
    "scope": {"crawl_scope": "domain"},
    "blocklists": {"blocklists": ("none.txt",)},
    "url_traps": {"url_traps": ("calendar",)},
    "site_rules": {"site_rules": ("wikis",)},
    "known_urls": {"known_urls": ("none.known",)},
    "known_links": {"known_links": "none.known"},
    "link_types": {"skipped_link_types": ("ugc",)},
    "noindex": {"noindex": "drop"},
    "languages": {"crawl_languages": ("en",)},
    "aliases": {"url_alias_pairs": 5},
    "near_duplicates": {"near_duplicates": "follow"},
    "known_texts": {"known_texts": "none.known"},
    "left_overs": {"lower_left_overs": True},
    "quality": {"quality_threshold": 0.5},
    "budgets": {"url_budget": 10},
    "mixture": {"mixture": "none.json"},
}
"""A setting that asks for each part, and for no other. Files need not be there for the part to be imported."""
IMPORTED = {
    "crawl4llm/addon/request_budgets.py": {  # for requests, not documents
        *("budgets.accounts", "budgets.scopes"),
        "near_duplicates.work",
    },
    "crawl4llm/commands/reference.py": {"site_rules.reference"},  # writes docs/site-rules.md
    "crawl4llm/crawl/stored_crawl.py": {"budgets.scopes"},  # tells for which budget a document waits
    "crawl4llm/live/steering.py": {"blocklists.work"},  # reads lists again when they change
    "crawl4llm/tools/archive/copies.py": {"blocklists.work"},  # copies have the lists of the crawl
    "crawl4llm/tools/export/archive_source.py": {"blocklists.work"},  # exports go by the lists of the crawl
    "crawl4llm/tools/export/export.py": {"known_texts.work"},  # exports leave out known texts
    "crawl4llm/tools/export/filters.py": {"known_texts.work"},  # likewise
    "crawl4llm/tools/export/selecting.py": {"near_duplicates.work"},  # exports leave out near duplicates
    "crawl4llm/tools/corpus/known.py": {"known_links.file"},  # `scrapy corpus known` makes the files
    "crawl4llm/tools/corpus/known_sources.py": {  # likewise
        *("known_links.file", "known_texts.work"),
        "known_urls.work",
    },
    "crawl4llm/tools/explain.py": {"known_links.file"},  # tells which links a known page gave
    "crawl4llm/tools/_known_files.py": {"known_links.file", "known_texts.work", "known_urls.work"},  # likewise
    "crawl4llm/tools/trainlm/plan.py": {"known_texts.work"},  # models are not trained on texts of their targets
}
"""What else imports from a part's folder, and why; it is to be mended if the folder goes."""
SMALL: dict[str, Any] = {"CRAWL_SEEDS": 20, "CRAWL_BATCH_SIZE": 20, "COMMIT_INTERVAL_PAGES": 25}


def loaded(code: str) -> set[str]:
    """Return the modules that a fresh process has after some code."""
    shown = "import json, sys; print(json.dumps(list(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{shown}"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return set(json.loads(run.stdout))


def works(modules: set[str]) -> set[str]:
    """Return the parts whose work is among modules."""
    return {name.split(".")[2] for name in modules if name.startswith("crawl4llm.parts.") and name.endswith(".work")}


# -- declarations and work ----------------------------------------------------------------------------------------


OPENING = """
import contextlib, json, os, sys, crawl4llm.options, crawl4llm.base.errors, crawl4llm.parts
for name, settings in json.loads(sys.argv[1]).items():
    if os.fork() == 0:
        options = crawl4llm.options.Options(**settings)
        with contextlib.suppress(crawl4llm.base.errors.InputError):
            assert len(list(crawl4llm.parts.open_parts(options))) == bool(settings)
        os.write(1, json.dumps([name, list(sys.modules)]).encode() + b"\\n")
        os._exit(0)
    os.wait()
"""
"""Opens parts by each of some settings, in a process that has not done so before; prints its modules."""


@pytest.fixture(scope="module")
def after_opening() -> dict[str, set[str]]:
    """The modules that are there after parts were opened, by the part that was asked for; "": none."""
    given = json.dumps({"": {}, **ASKED_FOR})
    run = subprocess.run(
        [sys.executable, "-c", OPENING, given], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert run.stderr == ""
    return {name: set(modules) for name, modules in map(json.loads, run.stdout.splitlines())}


@pytest.mark.parametrize("asked", ["", *ASKED_FOR])
def test_only_what_is_asked_for_is_imported(asked: str, after_opening: dict[str, set[str]]) -> None:
    assert works(after_opening[asked]) == ({asked} if asked else set())


def test_declarations_are_all_that_is_imported_always() -> None:
    """A handful of modules, and no package that is large."""
    before = loaded(
        "import crawl4llm.base.domain_lists, crawl4llm.base.expressions, crawl4llm.base.settings, crawl4llm.base.stats"
    )
    more = loaded("from crawl4llm.parts import ORDER") - before - loaded("import lazy_loader, ast")
    declared = {f"crawl4llm.parts.{one.name}" for one in ORDER} | {"crawl4llm.parts.url_traps.rules"}
    assert more == {"crawl4llm.parts", *(f"crawl4llm.parts.{name}" for name in ("order", "part", "opened")), *declared}
    packages = {name.partition(".")[0] for name in loaded("import crawl4llm.options")}
    assert not packages & {"lmdb", "numpy", "pyarrow", "rensa", "scrapy", "twisted", "fasttext", "valkey"}


@pytest.mark.parametrize("declared", ORDER, ids=[one.name for one in ORDER])
def test_a_declaration_is_of_its_part(declared: Declaration) -> None:
    folder = f"crawl4llm.parts.{declared.name}"
    own = {field.name for field in fields(sys.modules[folder].Settings)}
    assert own <= {field.name for field in fields(Options)}
    assert declared.setting.lower() in own
    assert declared.work.startswith(f"{folder}.work.")
    work = load_part(declared.work)
    assert issubclass(work, Part)
    assert work.name == declared.name
    hooks = {name for name in vars(work) if not name.startswith("_")} & set(vars(Part))
    assert hooks, "it does something"
    assert declared.partitioned in {EVERYWHERE, CONTINUOUS, ALONE}
    assert not declared.asked(Options())
    assert declared.asked(Options(**ASKED_FOR[declared.name]))
    for table, rows in ((reasons.DROPPED, declared.reasons), (KEYS, declared.counts)):
        assert {name: table[name] for name in rows} == rows


def test_no_two_parts_declare_the_same() -> None:
    """And each folder is in the order."""
    folders = [module.name for module in pkgutil.iter_modules(parts.__path__) if module.ispkg]
    assert sorted(one.name for one in ORDER) == sorted(folders) == sorted(ASKED_FOR)
    for of in (
        [field.name for one in ORDER for field in fields(sys.modules[f"crawl4llm.parts.{one.name}"].Settings)],
        [reason for one in ORDER for reason in one.reasons],
        [key for one in ORDER for key in one.counts],
    ):
        assert len(of) == len(set(of))


def imports() -> Iterator[tuple[str, str]]:
    """Yield each file that imports from a part's folder it does not lie in, and what: ``NAME`` or ``NAME.MODULE``."""
    names = {one.name for one in ORDER}
    door_has = ast.parse((PROJECT / "crawl4llm/parts/__init__.pyi").read_text()).body
    lies_in = {
        alias.name: str(one.module) for one in door_has if isinstance(one, ast.ImportFrom) for alias in one.names
    }
    for path in [*(PROJECT / "crawl4llm").rglob("*.py"), *(PROJECT / "simulate").rglob("*.py")]:
        source = path.read_text()
        is_whole = "from crawl4llm import parts\n" in source
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                given = [alias.name for alias in node.names]
            elif isinstance(node, ast.Attribute) and is_whole and ast.unparse(node.value) == "parts":
                given = [f"crawl4llm.parts.{lies_in.get(node.attr, node.attr)}"]
            elif isinstance(node, ast.ImportFrom) and node.module:
                door = node.module == "crawl4llm.parts"
                given = [lies_in.get(alias.name, alias.name) for alias in node.names] if door else [node.module]
                given = [f"crawl4llm.parts.{one}" for one in given] if door else given
            else:
                continue
            for module in given:
                place, _, rest = module.partition("crawl4llm.parts.")
                name = rest.partition(".")[0]
                if not place and name in names and f"parts/{name}/" not in path.as_posix():
                    yield str(path.relative_to(PROJECT)), rest


def test_a_folder_can_be_deleted() -> None:
    """Nothing else needs it but its line in the order, and what is listed above with a reason."""
    found = sorted(set(imports()))
    grouped = {file: {module for _, module in its} for file, its in groupby(found, key=lambda one: one[0])}
    assert grouped.pop("crawl4llm/parts/order.py") == {one.name for one in ORDER}
    assert grouped == IMPORTED


# -- the order ----------------------------------------------------------------------------------------------------


def test_parts_come_in_their_order_whatever_that_of_settings() -> None:
    every: dict[str, Any] = {}
    for name in ("budgets", "near_duplicates", "url_traps", "quality", "scope"):
        every |= ASKED_FOR[name]
    opened = open_parts(Options(**every, crawl_parts=("own_parts.Second", "own_parts.First")))
    assert [part.name for part in opened] == [
        *("scope", "url_traps", "near_duplicates", "quality", "budgets"),
        *("second", "first"),
    ]
    assert [hook.__self__.name for hook in opened.having("rated")] == ["near_duplicates", "second", "first"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("given", [("own_parts.First", "own_parts.Second"), ("own_parts.Second", "own_parts.First")])
def test_each_hook_is_called_in_that_order(tmp_path: Path, given: tuple[str, ...]) -> None:
    Noting.called.clear()
    web = GraphCorpus({"a": ["b", "c"], "b": ["c", "d"], "c": [], "d": []})
    driven = Driven(web, tmp_path, url_policy="breadth_first", crawl_parts=given)
    driven.run("a")
    driven.crawl.statistics()
    driven.close()
    names = [path.rpartition(".")[2].lower() for path in given]
    hooks = {hook for hook, _ in Noting.called}
    assert hooks == {name for name in vars(Noting) if callable(getattr(Noting, name)) and not name.startswith("_")}
    for hook in hooks - {"finished", "admits", "seeds", "blocks"}:
        called = [name for one, name in Noting.called if one == hook]
        assert called == names * (len(called) // 2), hook
    for hook in ("admits", "seeds", "blocks"):  # of several documents at once: one part after the other
        called = [name for one, name in Noting.called if one == hook]
        assert called.count("first") == called.count("second")
        assert called[0] == names[0], hook


# -- somebody else's ----------------------------------------------------------------------------------------------


def own_crawl(web: Web, output: Path, env: dict[str, str] | None = None, **settings: object) -> Any:
    given = {**SMALL, "CRAWL_MAX_PAGES": 400, "CRAWL_PARTS": "own_parts.Own", **settings}
    return crawl(web, output, env=env, **given)


@pytest.fixture(scope="module", params=["breadth_first", "link"])
def whole(
    request: pytest.FixtureRequest, demo_web: Web, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, str]:
    """A policy, a crawl by it with a part of somebody else's, and what that crawl printed."""
    output = tmp_path_factory.mktemp("own") / "run"
    result = own_crawl(demo_web, output, URL_POLICY=request.param)
    assert result.returncode == 0, result.stderr
    return request.param, output, result.stdout


def files_of(output: Path) -> dict[str, bytes]:
    names = ["crawl.jsonl", "failures.jsonl", *(f"warc/{path.name}" for path in (output / "warc").iterdir())]
    return {name: (output / name).read_bytes() for name in names}


def test_a_part_of_somebody_elses_does_what_its_hooks_say(whole: tuple[str, Path, str]) -> None:
    _, output, told = whole
    lines, figures = crawl_log(output), stats(output)
    assert [line["own"] for line in lines] == list(range(len(lines)))
    assert PAGES <= len(lines) < PAGES + SMALL["CRAWL_BATCH_SIZE"]
    assert f"({ENOUGH})" in told
    assert f"  own              {len(lines) / PAGES:.0%} of {PAGES}\n" in told
    assert figures["own/share"] == len(lines) / PAGES
    assert figures["own/ended"] >= len(lines)
    assert figures["pages/own"] == len(lines)
    found = [line for line in lines if line["depth"]]
    assert not any(one_in(5, line["url"]) or one_in(7, line["url"]) for line in found)
    assert not any(one_in(3, line["url"]) for line in found[: LATER - SMALL["CRAWL_SEEDS"]]), "they wait"
    assert any(one_in(3, line["url"]) for line in lines[LATER:]), "until they were taken back"
    dropped = [json.loads(line) for line in (output / "failures.jsonl").read_text().splitlines()]
    refused = [line for line in dropped if line["reason"] == "own_dropped"]
    assert all(one_in(7, line["url"]) and line["rule"] == "a seventh" for line in refused)
    assert len(refused) == figures["dropped/own_dropped"] == figures["links/own_dropped"] > 10
    assert figures["links/own_left"] > 10
    assert figures["links/own_found"] == figures["links/new"] - len(refused)
    archived = b"".join(gzip.decompress(path.read_bytes()) for path in (output / "warc").glob("*.warc.gz"))
    assert archived.count(b"own-place: ") == len(lines)
    assert json.loads((output / "settings.json").read_text())["settings"]["CRAWL_PARTS"] == ["own_parts.Own"]


def test_without_it_nothing_of_it_is_there(demo_web: Web, tmp_path: Path) -> None:
    result = crawl(demo_web, tmp_path / "run", **SMALL, CRAWL_MAX_PAGES=150, URL_POLICY="breadth_first")
    assert result.returncode == 0, result.stderr
    assert "own" not in result.stdout.replace("unknown", "")
    assert len(crawl_log(tmp_path / "run")) == 150
    assert not any("own" in line for line in crawl_log(tmp_path / "run"))
    assert not any("own" in key for key in stats(tmp_path / "run"))


def test_killed_and_resumed_it_goes_the_same_way(demo_web: Web, whole: tuple[str, Path, str], tmp_path: Path) -> None:
    """Before the documents that wait are taken back, and after."""
    policy, before, _ = whole
    given: dict[str, Any] = {"URL_POLICY": policy, "JOBDIR": tmp_path / "job"}
    for page in (45, 85, 110):
        result = own_crawl(demo_web, tmp_path / "run", {"OWN_KILLED": str(page)}, **given)
        assert result.returncode == -9, result.stdout + result.stderr
    verified = scrapy("frontier", str(tmp_path / "job"), "--verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    other = crawl(demo_web, tmp_path / "run", **SMALL, CRAWL_MAX_PAGES=400, **given)
    assert "CRAWL_PARTS was ['own_parts.Own'], is []" in error_of(other)
    result = own_crawl(demo_web, tmp_path / "run", **given)
    assert result.returncode == 0, result.stderr
    assert files_of(tmp_path / "run") == files_of(before)
    figures, expected = stats(tmp_path / "run"), stats(before)
    assert {key: figures[key] for key in expected if "own" in key} == {
        key: value for key, value in expected.items() if "own" in key
    }
    assert f"({ENOUGH})" in result.stdout


@pytest.mark.parametrize("whole", ["breadth_first"], indirect=True)
@pytest.mark.parametrize("hook", ["follows", "admits", "found", "place", "lease", "rated", "crawled"])
def test_a_part_that_raises_is_named_and_the_last_commit_stands(
    demo_web: Web, whole: tuple[str, Path, str], tmp_path: Path, hook: str
) -> None:
    policy, before, _ = whole
    given: dict[str, Any] = {"URL_POLICY": policy, "JOBDIR": tmp_path / "job"}
    result = own_crawl(demo_web, tmp_path / "run", {"OWN_RAISES": f"{hook} 70"}, **given)
    told = error_of(result)
    assert result.returncode == 1
    assert "own_parts.Own" in told
    assert "own trouble" in told
    assert "\n" not in told
    assert "own trouble" in (tmp_path / "run/errors.log").read_text(), "in full"
    result = own_crawl(demo_web, tmp_path / "run", **given)
    assert result.returncode == 0, result.stderr
    assert files_of(tmp_path / "run") == files_of(before)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("own_parts.Missing", "module 'own_parts' has no attribute 'Missing'"),
        ("no_such_module.Own", "No module named 'no_such_module'"),
        ("Own", "Empty module name"),
        ("own_parts.NoPart", "it does not inherit crawl4llm.parts.Part"),
        ("own_parts.one_in", "it does not inherit crawl4llm.parts.Part"),
    ],
)
def test_what_cannot_be_loaded_is_refused(tmp_path: Path, path: str, told: str) -> None:
    with pytest.raises(InputError) as raised:
        open_parts(Options(crawl_parts=(path,)))
    assert str(raised.value).startswith(f"CRAWL_PARTS = {path!r} ")
    assert told in str(raised.value)
    if path == "own_parts.NoPart":
        result = crawl(None, tmp_path / "run", CORPUS="demo", CRAWL_PARTS=path)
        assert error_of(result) == str(raised.value)
        assert not (tmp_path / "run").exists()


def test_a_crawl_by_several_workers_has_none_of_somebody_elses(tmp_path: Path) -> None:
    given = {"CORPUS": "demo", "CRAWL_PARTS": "own_parts.Own", "STORAGE": f"file://{tmp_path}/storage"}
    said = error_of(crawl(None, tmp_path / "run", **given))
    assert said == "STORAGE cannot be combined with the part own_parts.Own; leave one of them out"


def test_what_a_part_goes_by_is_of_the_crawl_and_checked_at_resume(demo_web: Web, tmp_path: Path) -> None:
    given: dict[str, Any] = {"JOBDIR": tmp_path / "job", "CRAWL_MAX_PAGES": 40}
    assert own_crawl(demo_web, tmp_path / "run", {"OWN_FILE": "one"}, **given).returncode == 0
    identity = json.loads((tmp_path / "run/settings.json").read_text())["parts"]
    assert identity == {"own_parts.Own": {"file": "one"}}
    said = error_of(own_crawl(demo_web, tmp_path / "run", {"OWN_FILE": "two"}, **given))
    assert "what CRAWL_PARTS go by was" in said

"""Live logging: real crawls, and what then stands in the files that TensorBoard and Weights & Biases read."""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, crawl, crawl_log, error_of, stats

from crawl4llm.base.installed import to_install

OFFLINE = {"WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false"}
PAGES: dict[str, Any] = {"CRAWL_MAX_PAGES": 60, "CRAWL_SEEDS": 20, "CRAWL_BATCH_SIZE": 20, "URL_POLICY": "random"}

Figures = dict[str, dict[int, float]]
"""Key, step, value."""


def tensorboard_figures(output: Path) -> Figures:
    """The scalars of an event file: records of length, check of it, content, check of that (tf.io, TFRecord format)."""
    event_type: Any = import_module("tensorboardX.proto.event_pb2").Event
    (path,) = (output / "tensorboard").iterdir()
    data, at = path.read_bytes(), 0
    figures: Figures = defaultdict(dict)
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        event = event_type.FromString(data[at + 12 : at + 12 + length])
        for value in event.summary.value:
            if value.HasField("simple_value"):
                figures[value.tag][event.step] = value.simple_value
        at += 16 + length
    return figures


def wandb_records(output: Path) -> Iterator[Any]:
    """The records of a run's file: a header of 7 bytes, then a log in LevelDB's format, in blocks of 32 KiB."""
    record_type: Any = import_module("wandb.proto.wandb_internal_pb2").Record
    (path,) = (output / "wandb").glob("offline-run-*/run-*.wandb")
    data, at, record = path.read_bytes(), 7, b""
    assert data[:4] == b":W&B"
    while at < len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in {1, 4}:  # whole, or the last part of one
            yield record_type.FromString(record)
            record = b""


def wandb_figures(output: Path) -> Figures:
    figures: Figures = defaultdict(dict)
    for record in wandb_records(output):
        for item in record.history.item:
            key = "/".join(item.nested_key) or item.key
            if not key.startswith("_"):
                figures[key][record.history.step.num] = json.loads(item.value_json)
    return figures


def check_figures(figures: Figures, output: Path, steps: list[int]) -> None:
    """What was logged is what the crawl's log and statistics say."""
    lines = crawl_log(output)
    for step in steps:
        seen = lines[:step]
        mean = sum(line["influence"] for line in seen) / step
        assert figures["influence/mean"][step] == pytest.approx(mean)
        assert figures["pages/crawled"][step] == step
    final = {key: values[steps[-1]] for key, values in figures.items() if steps[-1] in values}
    assert final == pytest.approx(stats(output))
    assert list(figures["pages/crawled"]) == steps


@pytest.fixture(scope="module")
def logged(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a crawl of three iterations, logged to both."""
    pytest.importorskip("tensorboardX", reason="needs the extra tensorboard")
    pytest.importorskip("wandb", reason="needs the extra wandb")
    output = tmp_path_factory.mktemp("logged") / "run"
    result = crawl(demo_web, output, env=OFFLINE, **PAGES, LIVE_LOGGING="wandb,tensorboard")
    assert result.returncode == 0, result.stderr
    return output


def test_tensorboard(logged: Path) -> None:
    check_figures(tensorboard_figures(logged), logged, [20, 40, 60])


def test_wandb_offline(logged: Path) -> None:
    check_figures(wandb_figures(logged), logged, [20, 40, 60])

    (run,) = (record.run for record in wandb_records(logged) if record.HasField("run"))
    assert (run.project, run.display_name) == ("crawl4llm", "run")
    config = {update.key: json.loads(update.value_json) for update in run.config.update if update.key != "_wandb"}
    assert config == json.loads((logged / "settings.json").read_text())


def test_a_crawl_is_the_same_with_it(logged: Path, demo_web: Web, tmp_path: Path) -> None:
    crawl(demo_web, tmp_path / "run", **PAGES, LIVE_LOGGING="")
    assert (tmp_path / "run" / "crawl.jsonl").read_bytes() == (logged / "crawl.jsonl").read_bytes()
    assert not {"wandb", "tensorboard"} & {path.name for path in (tmp_path / "run").iterdir()}


def test_without_iterations_the_end_is_logged(demo_web: Web, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="needs the extra tensorboard")
    result = crawl(demo_web, tmp_path / "run", **{**PAGES, "CRAWL_BATCH_SIZE": 0}, LIVE_LOGGING="tensorboard")
    assert result.returncode == 0, result.stderr
    figures = tensorboard_figures(tmp_path / "run")
    check_figures(figures, tmp_path / "run", list(figures["pages/crawled"]))
    assert figures["pages/crawled"][60] == 60


def test_the_extra_is_named_where_it_is_missing(demo_web: Web, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "tensorboardX.py").write_text("raise ModuleNotFoundError(name='tensorboardX')")
    result = crawl(demo_web, tmp_path / "run", env={"PYTHONPATH": str(hidden)}, **PAGES, LIVE_LOGGING="tensorboard")
    said = f"LIVE_LOGGING tensorboard is not installed (tensorboardX); {to_install('tensorboard')}"
    assert error_of(result) == said


def test_wandb_without_an_account(demo_web: Web, tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="needs the extra wandb")
    env = {"HOME": str(tmp_path), "NETRC": str(tmp_path / "none"), "WANDB_API_KEY": "", "WANDB_MODE": "online"}
    result = crawl(demo_web, tmp_path / "run", env=env, **PAGES, LIVE_LOGGING="wandb")
    error = error_of(result)
    assert error.startswith("LIVE_LOGGING wandb cannot start (")
    assert error.endswith("WANDB_MODE=offline does without")
    assert not (tmp_path / "run/crawl.jsonl").exists()


def test_what_cannot_be_begun_ends_the_crawl(demo_web: Web, tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="needs the extra tensorboard")
    pytest.importorskip("wandb", reason="needs the extra wandb")
    output, job = tmp_path / "run", {"JOBDIR": tmp_path / "job"}  # a new crawl would refuse the directory
    assert crawl(demo_web, output, **{**PAGES, **job, "CRAWL_MAX_PAGES": 10}).returncode == 0
    for name in ("tensorboard", "wandb"):
        (output / name).touch()
        error = error_of(crawl(demo_web, output, env=OFFLINE, **PAGES, **job, LIVE_LOGGING=name))
        assert error.startswith(f"LIVE_LOGGING {name} cannot ")
        assert "Not a directory" in error
        assert len(crawl_log(output)) == 10


def test_a_mode_that_wandb_does_not_have_ends_the_crawl(demo_web: Web, tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="needs the extra wandb")
    output = tmp_path / "run"
    error = error_of(crawl(demo_web, output, env={"WANDB_MODE": "ofline"}, **PAGES, LIVE_LOGGING="wandb"))
    assert error.startswith("LIVE_LOGGING wandb cannot ")
    assert "'ofline'" in error
    assert not output.exists() or [path.name for path in output.iterdir()] == ["errors.log"]


def test_a_dry_run_logs_nothing(demo_web: Web, tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="needs the extra wandb")
    result = crawl(demo_web, tmp_path / "run", env=OFFLINE, **PAGES, LIVE_LOGGING="wandb", DRY_RUN=1)
    assert result.returncode == 0, result.stderr
    assert "wandb" not in result.stderr

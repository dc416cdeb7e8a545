"""``scrapy trainlm``: what models are trained on, that they learn the same each time, and what is refused."""

from __future__ import annotations

import json
import math
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crawl_helpers import PROJECT

from crawl4llm.base.errors import InputError
from crawl4llm.tools._learnt import Learnt, Point, Results, rank_correlation
from crawl4llm.tools.trainlm import trainer
from crawl4llm.tools.trainlm.plan import IN_TARGET, SIZES, Arm, Asked, PageText, Target, Tokenizer, write_plan
from crawl4llm.tools.trainlm.results import bits_per_byte, collect, fetches_for, sentences

if find_spec("jax") is None:  # not imported here: a process that has JAX must not fork, as other tests do
    pytest.skip("needs the extra trainlm", allow_module_level=True)

pytestmark = pytest.mark.usefixtures("jax_cache")
SMALLEST = SIZES["50k"]
TRAINER = ["-m", "crawl4llm.tools.trainlm.trainer"]
RIVERS = "river bank flows water under stone bridge slowly toward harbour where boats wait".split()
SUMS = "add carry digit column borrow total divide remainder fraction half third quarter".split()


def texts(words: Sequence[str], count: int, seed: int = 0) -> list[str]:
    """Texts of one kind, each of some forty words."""
    draw = random.Random(f"{words[0]} {seed}")
    return [" ".join(draw.choices(words, k=40)) for _ in range(count)]


def arm(name: str, some: Iterable[str | None], **facts: Any) -> Arm:
    """A run whose crawl fetched two documents for each page."""
    pages = [PageText(text, 2 * place, "" if text else "robots") for place, text in enumerate(some, 1)]
    return Arm(name, pages, {"policy": name, **facts})


def target(name: str = "rivers", words: Sequence[str] = RIVERS) -> Target:
    return Target.of(name, iter(texts(words, 200, seed=99)))


def made(folder: Path, arms: Sequence[Arm], tokens: int = 20_000, **asked: Any) -> dict[str, Any]:
    """Write a plan of the smallest model, and return it."""
    folder.mkdir()
    write_plan(folder, arms, [target()], Asked(SMALLEST, tokens, **asked), {})
    plan: dict[str, Any] = json.loads((folder / trainer.PLAN).read_text())
    return plan


def train(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *TRAINER, str(folder), "--device", "cpu", *options]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=900)


def results(folder: Path) -> dict[str, Any]:
    """What was measured by each job, without times."""
    timed = {"seconds", "tokens_a_second"}
    found = [json.loads(path.read_text()) for path in sorted((folder / trainer.RESULTS).glob("*.json"))]
    return {one["job"]: {name: value for name, value in one.items() if name not in timed} for one in found}


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained plan: one run has texts like the target's, the other has not; two seeds. A checkpoint follows each 50
    of 117 steps."""
    folder = tmp_path_factory.mktemp("trainlm") / "plan"
    arms = [arm("rivers", texts(RIVERS, 1_200)), arm("sums", texts(SUMS, 1_200))]
    plan = made(folder, arms, tokens=30_000, seeds=2, points=2, curved=["rivers"])
    plan["training"] |= {"checkpoint_seconds": 0, "batch": 4}
    (folder / trainer.PLAN).write_text(json.dumps(plan))
    done = train(folder)
    assert done.returncode == 0, done.stderr
    return folder


# -- what is learnt ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_models_learn_what_they_read(two_runs: Path) -> None:
    found = collect(two_runs)
    rivers, sums = found.runs
    assert [run.name for run in found.runs] == ["rivers", "sums"]
    assert len(rivers.points[-1].losses["rivers"]) == 2
    # twelve equally likely words of seven bytes cannot be told in less than log2(12) bits each
    least = math.log2(len(RIVERS)) / (sum(map(len, RIVERS)) / len(RIVERS) + 1)
    assert least < rivers.points[-1].mean("rivers") < 2.0
    assert sums.points[-1].mean("rivers") > rivers.points[-1].mean("rivers") * 1.5
    assert rivers.points[0].mean("rivers") > rivers.points[-1].mean("rivers")
    assert least < rivers.estimates["rivers"] < sums.estimates["rivers"]


KILLED = """
import os, signal, sys
from crawl4llm.tools.trainlm.trainer.__main__ import main
os.environ["JAX_PLATFORMS"] = "cpu"
from crawl4llm.tools.trainlm.trainer import training

save = training.Trainer._save

def saved(*given):
    save(*given)
    os.kill(os.getpid(), signal.SIGKILL)

training.Trainer._save = saved
main()
"""


@pytest.mark.slow
def test_killed_amid_a_training_it_ends_elsewhere_with_the_same_bits(two_runs: Path, tmp_path: Path) -> None:
    """After its first checkpoint, and then after the next one. The trainer, which ends it, needs nothing of this
    project. Another seed gives others."""
    folder = tmp_path / "plan"
    shutil.copytree(two_runs, folder)
    shutil.rmtree(folder / trainer.RESULTS)
    shape = trainer.Shape(**json.loads((folder / trainer.PLAN).read_text())["model"])
    for step in (50, 100):
        killed = subprocess.run([sys.executable, "-c", KILLED, folder, "--device", "cpu"], cwd=PROJECT, check=False)
        assert killed.returncode == -signal.SIGKILL
        job = next(job for job in results(two_runs) if (folder / trainer.CHECKPOINTS / f"{job}.npz").exists())
        with np.load(folder / trainer.CHECKPOINTS / f"{job}.npz") as kept:
            assert int(kept["step"]) == step
            values = sum(kept[name].size for name in kept if name.startswith("leaf"))
        assert values == 3 * shape.parameters + 1, "weights, two averages of each slope, and a count"
        assert not results(folder)
    shutil.copytree(Path(trainer.__file__).parent, tmp_path / "trainer")
    code = "import sys; sys.modules['crawl4llm'] = None; sys.argv = ['trainer', 'plan', '--device', 'cpu']; "
    code += "import runpy; runpy.run_module('trainer', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    again = results(folder)
    assert again == results(two_runs)
    measured = [found["targets"]["rivers"]["bits"] for found in again.values()]
    assert len(set(measured)) == len(measured)
    assert not list((folder / trainer.CHECKPOINTS).iterdir())
    assert {found["parameters"] for found in again.values()} == {shape.parameters}


def test_it_has_the_parameters_that_its_name_says() -> None:
    for name, wanted in {"50k": 5e4, "1m": 1e6, "5m": 5e6, "25m": 25e6, "120m": 120e6}.items():
        assert SIZES[name].shape.parameters == pytest.approx(wanted, rel=0.03), name


# -- the plan ---------------------------------------------------------------------------------------------------------


def decoded(folder: Path, place: int, tokens: int) -> str:
    """The text that a model of a run reads."""
    tokenizer = Tokenizer.of(folder / "tokenizer.json")
    found = trainer.run_tokens(folder, f"order-{place:03d}.npy", tokens)
    parts = "".join("\n" if one == tokenizer.end else tokenizer._loaded.id_to_token(int(one)) for one in found)
    return parts.replace("Ġ", " ")


def test_documents_are_read_in_crawl_order_until_there_are_enough_tokens(tmp_path: Path) -> None:
    some = texts(RIVERS, 300)
    plan = made(tmp_path / "plan", [arm("one", some), arm("two", reversed(some))], tokens=2000)
    read = decoded(tmp_path / "plan", 0, 2000)
    assert "\n".join(some).startswith(read)
    assert "\n".join(reversed(some)).startswith(decoded(tmp_path / "plan", 1, 2000))
    (point,) = plan["runs"][0]["points"]
    assert point["pages"] == read.count("\n") + (not read.endswith("\n"))
    assert point["fetched"] == 2 * point["pages"]
    assert sum(json.loads((tmp_path / "plan" / trainer.PLAN).read_text())["runs"][0]["left_out"].values()) == 0


def test_texts_of_the_target_are_left_out_and_counted_even_if_they_differ_a_little(tmp_path: Path) -> None:
    known = target()
    long = [" ".join(f"{word}{place}" for place in range(60) for word in RIVERS)]
    nearly = [long[0] + " and a few words more"]
    aims = Target("rivers", [*known.held_out, *long], known.others)
    some = [known.held_out[0], nearly[0], None, " \n", *texts(SUMS, 200)]
    folder = tmp_path / "plan"
    folder.mkdir()
    write_plan(folder, [arm("one", some)], [aims], Asked(SMALLEST, 1000), {})
    (run,) = json.loads((folder / trainer.PLAN).read_text())["runs"]
    assert run["left_out"] == {IN_TARGET: 2, "robots": 1, "without text": 1}
    assert decoded(folder, 0, 1000).startswith(texts(SUMS, 1)[0])


def test_a_run_with_too_few_tokens_is_refused_with_the_number_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "plan").mkdir()
    few = [arm("short", texts(SUMS, 3))]
    with pytest.raises(InputError, match=r"short: has (\d+) tokens of 5,000 on 3 pages; give --tokens \1 or less"):
        write_plan(tmp_path / "plan", few, [target()], Asked(SMALLEST, 5000), {})


def test_a_target_with_few_texts_is_refused() -> None:
    with pytest.raises(InputError, match="--target few: has 3 distinct texts; give at least 40"):
        Target.of("few", iter(["a b", "b c", "c d", "c d", " "]))


def test_the_tokenizer_is_the_same_each_time_and_has_a_token_for_each_byte() -> None:
    learnt = texts(RIVERS, 300)
    one, two = Tokenizer.trained(learnt, 600), Tokenizer.trained(learnt, 600)
    assert one.digest == two.digest
    (odd,) = one.encode(["\x00 ἄβγ 漢字 \U0001f600"])
    assert odd[-1] == one.end
    assert one._loaded.decode([int(token) for token in odd[:-1]]) == "\x00 ἄβγ 漢字 \U0001f600"


# -- estimates and curves ---------------------------------------------------------------------------------------------


def test_the_estimate_is_a_distribution_over_the_next_token() -> None:
    draw = np.random.default_rng(0)
    run = draw.integers(0, 5, 200).astype(np.uint16)
    before = draw.integers(0, 5, 3).astype(np.uint16)
    told = [bits_per_byte(run, np.array([*before, last], np.uint16), 1, 7) for last in range(7)]
    known = bits_per_byte(run, before, 1, 7)
    assert sum(2 ** -(bits - known) for bits in told) == pytest.approx(1.0)


def learnt(name: str, *points: tuple[int, float]) -> Learnt:
    return Learnt(name, {}, [Point(100, fetched, fetched, {"t": [loss]}) for fetched, loss in points], {})


def test_how_many_fetches_a_curve_needs_for_a_loss() -> None:
    curve = learnt("influence", (100, 4.0), (1000, 3.0), (10_000, 2.5))
    assert fetches_for(curve, "t", 4.5) == 100
    assert fetches_for(curve, "t", 3.0) == pytest.approx(1000)
    assert fetches_for(curve, "t", 3.5) == pytest.approx(math.sqrt(100 * 1000))
    assert fetches_for(curve, "t", 2.4) is None
    other = learnt("indegree", (1000, 4.0), (4000, 3.0))
    assert list(sentences(Results({}, ["t"], [curve, other]))) == [
        "influence needs 25% of the fetches of indegree for the same loss on t (3.000 bits a byte)"
    ]


def test_rank_correlation() -> None:
    assert rank_correlation([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert rank_correlation([1, 2], [2, 1]) is None
    assert rank_correlation([1, 1, 1], [2, 1, 3]) is None

"""``scrapy evaluate --contest``: real contests on small webs, of the project's policies and of strangers'."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import PROJECT, TIMEOUT, Web, begin, crawl, error_of, scrapy
from demo_helpers import digests
from evaluation_helpers import table
from scrapy_server import Process

from crawl4llm.tools.evaluate.contest.web import MemoryWeb, hashed_seeds
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.demo import DemoPaths, ensure_demo
from simulate.warcs.corpus import WarcCorpus

POLICIES = "breadth_first,parent_mean,link,harmonic,bound,influence"
SETS, SEEDS, BATCH = 2, 10, 20
DEMO = {"pages": 300, "hosts": 10, "seed": 5}
ENV = {"SCRAPY_SETTINGS_MODULE": "settings.simulation"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the command is run: what it keeps lies below, not in the project."""
    return tmp_path_factory.mktemp("place")


@pytest.fixture(scope="module")
def track(place: Path, demo_web: Web) -> Path:
    """A track of a demo web, which has too few hosts for halves, and of a corpus that has enough."""
    webs = [
        {"name": "small", "demo": DEMO},
        {"name": "large", "corpus": str(demo_web.corpus), "model": str(demo_web.model)},
    ]
    path = place / "track.json"
    path.write_text(json.dumps({"track": "test", "seed_sets": SETS, "seeds": SEEDS, "batch": BATCH, "webs": webs}))
    return path


@pytest.fixture(scope="module")
def one_web(place: Path, track: Path) -> Path:
    """As ``track``, of the first web."""
    content, path = json.loads(track.read_text()), place / "one-web.json"
    path.write_text(json.dumps({**content, "webs": content["webs"][:1]}))
    return path


def hold(place: Path, track: object, out: object, *args: object, workers: int = 2) -> subprocess.CompletedProcess[str]:
    """Hold a contest with this project's settings, outside of its folder."""
    given = ["evaluate", "--contest", track, "--out", out, "-s", f"SCORING_WORKERS={workers}", *args]
    return scrapy(*map(str, given), cwd=place, env=ENV)


@pytest.fixture(scope="module")
def held(place: Path, track: Path) -> Path:
    out = place / "held"
    result = hold(place, track, out, "--policies", POLICIES, "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == results(out)
    return out


def results(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / "contest.json").read_text())
    return content


@pytest.fixture(scope="module")
def small(place: Path, held: Path) -> DemoPaths:
    """The demo web that the contest has built."""
    return ensure_demo(place / ".scrapy", **DEMO)


@pytest.mark.parametrize("policy", ["breadth_first", "parent_mean"])
def test_crawls_are_those_of_scrapy(policy: str, held: Path, small: DemoPaths, tmp_path: Path) -> None:
    """The log's digest is that of a simulated crawl from the same seeds; recall and area follow from that log."""
    (web,) = (web for web in results(held)["webs"] if web["name"] == "small")
    (ours,) = (
        crawl for crawl in results(held)["crawls"]
        if (crawl["web"], crawl["policy"], crawl["set"]) == ("small", policy, 1)
    )  # fmt: skip
    corpus = ClueWeb22Corpus(small.corpus)
    keys = sorted(corpus.keys(), key=lambda key: hashlib.sha256(f"1\n{key}".encode()).hexdigest())
    (tmp_path / "seeds.txt").write_text("".join(f"{key}\n" for key in keys[:SEEDS]))
    reach = web["sets"][1]["reach"]
    settings = {"URL_POLICY": policy, "CRAWL_MAX_PAGES": reach // 2, "CRAWL_BATCH_SIZE": BATCH, "WARC_ENABLED": 0}
    run = crawl(Web(*small), tmp_path / "run", tmp_path / "seeds.txt", **settings)
    assert run.returncode == 0, run.stderr
    log = (tmp_path / "run/crawl.jsonl").read_bytes()
    assert hashlib.sha256(log).hexdigest() == ours["log"]
    lines = [json.loads(line) for line in log.splitlines()]
    scores = _scores(small, keys)
    best = set(sorted(keys, key=lambda key: (-scores[key], key))[: len(keys) // 10])
    assert web["oracle"] == len(best) == len(keys) // 10
    hits = [len(best & {line["id"] for line in lines[:count]}) for count in range(reach // 2 + 1)]
    assert ours["found"] == [hits[per_cent * reach // 100] for per_cent in range(1, 51)]
    assert ours["area"] == pytest.approx(sum(hits[1:]) / (reach // 2) / web["sets"][1]["oracle"])
    tenth = [line["influence"] for line in lines[: reach // 10]]
    assert ours["influence"][1] == pytest.approx(sum(tenth) / len(tenth))


def _scores(paths: DemoPaths, keys: Sequence[str]) -> dict[str, float]:
    from crawl4llm.scoring.fasttext_scorer import FastTextScorer

    corpus, scorer = ClueWeb22Corpus(paths.corpus), FastTextScorer(paths.model, "__label__hq")
    texts = {key: corpus.text(key) for key in keys}
    return {key: scorer.score([text])[0] if text.strip() else 0.0 for key, text in texts.items()}


def test_webs_are_described_and_divided(held: Path, demo_web: Web) -> None:
    small, large = results(held)["webs"]
    assert (small["half"], small["pages"]) == ("reporting", 300)
    corpus = ClueWeb22Corpus(demo_web.corpus)
    whole = MemoryWeb.read("large", corpus, corpus.text)
    half = whole.of_hosts("half", lambda host: hashlib.sha256(host.encode()).digest()[-1] % 2 == 1)
    assert (large["half"], large["corpus_pages"]) == ("reporting", 1500)
    assert (large["pages"], large["hosts"]) == (len(half), len(half.hosts()))
    reaches = [len(half.reachable(hashed_seeds(half, SEEDS, number))) for number in range(SETS)]
    assert [start["reach"] for start in large["sets"]] == reaches
    assert large["digest"] != small["digest"]
    assert large["model"] == f"sha256:{hashlib.sha256(demo_web.model.read_bytes()).hexdigest()}"


def test_ranking_and_differences_follow_from_the_crawls(held: Path) -> None:
    content = results(held)
    areas: dict[str, list[float]] = {}
    for one in content["crawls"]:
        areas.setdefault(one["policy"], []).append(one["area"])
    ranking = content["ranking"]
    for standing in ranking:
        assert standing["means"]["area"] == pytest.approx(sum(areas[standing["policy"]]) / (2 * SETS))
    assert [standing["rank"] for standing in ranking] == [1, 2, 3, 4, None, None]
    assert {standing["policy"] for standing in ranking[-2:]} == {"influence", "bound"}
    ranked = [standing["means"]["area"] for standing in ranking[:-2]]
    assert ranked == sorted(ranked, reverse=True)
    assert len(content["differences"]) == 5 * 6  # measures, pairs of the four that are ranked
    for pair in content["differences"]:
        if pair["measure"] == "area":
            both = zip(areas[pair["policy"]], areas[pair["other"]], strict=True)
            assert pair["mean"] == pytest.approx(sum(one - two for one, two in both) / (2 * SETS))
            assert 1 / 16 <= pair["p"] <= pair["p_holm"] <= 1
    assert [row["Policy"] for row in table(held, "ranking")] == [standing["policy"] for standing in ranking]
    assert (held / "contest.md").read_text().count("\n| ") >= len(ranking)
    points = [row for row in table(held, "recall-small") if row["series"] == "breadth_first"]
    assert len(points) == 51


def test_shares_of_the_gap_to_the_bound(held: Path) -> None:
    """Of means over the sets of seeds, as benchmarks.link has them; the bound has read a quarter of the pages."""
    content = results(held)
    recalls: dict[tuple[str, str], list[float]] = {}
    oracle = {web["name"]: [start["oracle"] for start in web["sets"]] for web in content["webs"]}
    for one in content["crawls"]:
        share = one["found"][24] / oracle[one["web"]][one["set"]]
        recalls.setdefault((one["policy"], one["web"]), []).append(share)
    means = {name: sum(values) / len(values) for name, values in recalls.items()}
    closed = content["closed"]
    assert closed.keys() == {"breadth_first", "link", "harmonic", "influence"}
    for policy, marks in closed.items():
        gains = [means[policy, web] - means["parent_mean", web] for web in oracle]
        gaps = [means["bound", web] - means["parent_mean", web] for web in oracle]
        wide = [place for place, gap in enumerate(gaps) if gap >= 0.05]
        assert wide, "a bound that finds no more than parent_mean is none"
        expected = [gains[place] / gaps[place] if place in wide else None for place in range(len(gaps))]
        assert marks["25%"]["webs"] == [one if one is None else pytest.approx(one) for one in expected]
        whole = sum(gains[place] for place in wide) / sum(gaps[place] for place in wide)
        assert marks["25%"]["share"] == pytest.approx(whole)
        assert marks["25%"]["low"] <= marks["25%"]["share"] <= marks["25%"]["high"]
    assert closed["breadth_first"]["25%"]["share"] < 0 < closed["influence"]["25%"]["share"]
    rows = {row["Policy"]: row for row in table(held, "ranking")}
    link = closed["link"]["25%"]
    assert rows["link"]["Closed at 25%"] == f"{link['share']:.2f} ({link['low']:.2f} to {link['high']:.2f})"
    worst = min((share, web) for share, web in zip(link["webs"], oracle, strict=True) if share is not None)
    assert rows["link"]["Least, at 25%"] == f"{worst[1]}: {worst[0]:.2f}"
    assert rows["parent_mean"]["Closed at 25%"] == rows["bound"]["Closed at 25%"] == ""
    told = (held / "contest.md").read_text().replace("\\", "")
    assert "| Closed at 10% | Closed at 25% | Least, at 25% |" in told
    assert rows["link"]["Closed at 25%"] in told


def test_same_bytes_by_one_process_and_from_the_results_alone(
    place: Path, one_web: Path, track: Path, held: Path
) -> None:
    """Of one web and some policies, a crawl each that two processes have made in another order."""
    alone = place / "alone"
    result = hold(place, one_web, alone, "--policies", "influence,link,bound", workers=1)
    assert result.returncode == 0, result.stderr
    assert f"open {alone / 'report.html'}" in result.stdout
    crawls = {path.name: path.read_bytes() for path in (held / "crawls").iterdir()}
    found = {path.name: path.read_bytes() for path in (alone / "crawls").iterdir()}
    assert len(found) == 3 * SETS
    assert {name: crawls[name] for name in found} == found
    again = place / "again"
    assert hold(place, held / "contest.json", again).returncode == 0
    found = digests(again)
    assert {name: found[name] for name in digests(held) if name.split("/")[0] != "crawls"} == found


def example() -> str:
    """The policy that docs/contest.md shows."""
    (shown,) = re.findall(r"```python\n(.*?)```", (PROJECT / "docs/contest.md").read_text(), re.DOTALL)
    return str(shown)


BROKEN = "from crawl4llm.policies.{base} import Policy as Base\n\n\nclass Policy(Base):\n    name = 'mine'\n"


def test_strangers_policies(place: Path, track: Path, held: Path) -> None:
    """One that works takes part in a contest that was held before; those that fail are named, and harm nobody."""
    folder = place / "strangers"
    folder.mkdir()
    (folder / "shallow.py").write_text(example())
    peeks = "\n    async def score(self, candidates):\n        from crawl4llm.scoring.rating import influence\n"
    peeks += "        return await self._workers.run(influence, [one.key for one in candidates])\n"
    (folder / "peeks.py").write_text(BROKEN.format(base="breadth_first") + peeks)
    dies = "\n    def crawled(self, page):\n        import os\n        os._exit(7)\n"
    (folder / "dies.py").write_text(BROKEN.format(base="breadth_first") + dies)
    raises = "\n    def crawled(self, page):\n        raise ZeroDivisionError('no\\nway')\n"
    (folder / "raises.py").write_text(BROKEN.format(base="breadth_first") + raises)
    before = {path: path.stat().st_mtime_ns for path in (held / "crawls").iterdir()}
    out = place / "with-strangers"
    (out / "crawls").mkdir(parents=True)
    for path in before:
        os.link(path, out / "crawls" / path.name)
    names = ",".join(str(folder / f"{name}.py") for name in ("shallow", "peeks", "dies", "raises"))
    result = hold(place, track, out, "--policies", f"breadth_first,{names}")
    assert error_of(result) == (
        "policy peeks failed on small, seed set 0: it reads the page "
        + error_of(result).partition("reads the page ")[2].split(" ")[0]
        + " before its fetch; such a policy must set looks_ahead = True (3 policies failed)"
    )
    failures = {failure["policy"]: failure["error"] for failure in results(out)["failures"]}
    assert failures["dies"] == "its process ended with status 7"
    assert failures["raises"] == "ZeroDivisionError: no way"
    assert {standing["policy"] for standing in results(out)["ranking"]} == {"breadth_first", "shallow"}
    assert not results(out)["closed"]
    assert "Closed at 25%" not in table(out, "ranking")[0], "without the ends of the gap"
    shallow = next(policy for policy in results(out)["policies"] if policy["name"] == "shallow")
    assert shallow["digest"] == hashlib.sha256((folder / "shallow.py").read_bytes()).hexdigest()
    now = {path: path.stat().st_mtime_ns for path in (held / "crawls").iterdir()}
    assert now == before
    assert len(list((out / "crawls").iterdir())) == len(before) + 2 * SETS


def test_an_archive_is_a_web(place: Path, small: DemoPaths, tmp_path: Path) -> None:
    """WARC files record no inlinks: those are the links of its pages. With one set of seeds no error is known."""
    run = crawl(Web(*small), tmp_path / "run", CRAWL_MAX_PAGES=200, CRAWL_SEEDS=10, URL_POLICY="breadth_first")
    assert run.returncode == 0, run.stderr
    track = tmp_path / "track.json"
    web = {"name": "none", "corpus": "nowhere", "model": "nothing"}
    track.write_text(json.dumps({"track": "one", "seed_sets": 1, "seeds": 10, "batch": 10, "webs": [web]}))
    given = ("--contest-web", tmp_path / "run", "-s", f"SCORER_MODEL={small.model}", "-s", "SIMULATION_TEXT=extracted")
    result = hold(place, track, tmp_path / "out", "--policies", "indegree,breadth_first", *given)
    assert result.returncode == 0, result.stderr
    content = results(tmp_path / "out")
    assert [(one["name"], one["half"], one["pages"]) for one in content["webs"]] == [("run", None, 200)]
    assert [one["reads"] for one in content["policies"]] == [["inlinks"], []]
    assert [standing["errors"]["area"] for standing in content["ranking"]] == [None, None]
    corpus = WarcCorpus(tmp_path / "run", tmp_path / "index")
    held = MemoryWeb.read("run", corpus, corpus.text)
    key = max(held.keys(), key=lambda key: len(held.inlinks(key)))
    sources = [source for source in held.keys() for link in held.outlinks(source) if link.key == key]
    assert [link.key for link in held.inlinks(key)] == sources


WAITS = """
    def crawled(self, page):
        import os, time
        while os.path.exists(os.environ.get("WAIT", "")):
            time.sleep(0.05)
"""


def test_goes_on_where_it_was_stopped(place: Path, held: Path, one_web: Path, tmp_path: Path) -> None:
    """By Ctrl-C, SIGTERM and kill -9 in turn: what was done stays, and nothing else; the processes of the crawls end
    with the command; the results are those of an undisturbed contest."""
    waits, wait, out = tmp_path / "waits.py", tmp_path / "wait", tmp_path / "out"
    waits.write_text(BROKEN.format(base="parent_mean") + WAITS)
    wait.touch()
    policies = ["--policies", f"breadth_first,{waits}"]
    for stop, status in ((signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)):
        args = ["evaluate", "--contest", str(one_web), "--out", str(out), *policies]
        process = begin(args, {**ENV, "WAIT": str(wait)}, cwd=place, silent=["out"])
        _until(lambda process=process: len(list(out.glob("crawls/*.json"))) == SETS and _children(process))
        children = _children(process)
        process.send_signal(stop)
        _, told = process.communicate(timeout=600)
        assert process.returncode == status, told
        assert "Traceback" not in told
        _until(lambda children=children: not any(map(_lives, children)))
        assert {path.suffix for path in out.rglob("*") if path.is_file()} == {".json"}
        assert not (out / "contest.json").exists()
    before = {path: path.stat().st_mtime_ns for path in out.glob("crawls/*.json")}
    wait.unlink()
    assert hold(place, one_web, out, *policies).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert hold(place, one_web, tmp_path / "other", *policies, workers=1).returncode == 0
    assert (tmp_path / "other/contest.json").read_bytes() == (out / "contest.json").read_bytes()


def _children(process: Process | subprocess.Popen[str]) -> list[int]:
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return list(map(int, listed.split()))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _until(done: Any) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_cannot_be_used(place: Path, track: Path, held: Path, small: DemoPaths, tmp_path: Path) -> None:
    """One line each, before anything is crawled."""

    def error(given: object, *args: object) -> str:
        return error_of(hold(place, given, tmp_path / "out", *args))

    def file(content: object) -> Path:
        path = tmp_path / "given.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    good = json.loads(track.read_text())
    assert "no such track, and no such file; known are: small" in error("smal")
    assert "is no JSON file" in error(file("{"))
    assert "'marks' is no field of it" in error(file({**good, "marks": [1]}))
    assert "its seeds is 0, which cannot be" in error(file({**good, "seeds": 0}))
    assert "it lacks webs" in error(file({"track": "test"}))
    assert "it does not hold what its name says" in error(file([good]))
    code = [{"name": "x", "corpus": "graph_corpus.GraphCorpus", "model": "m.bin"}]
    assert "its corpus is 'graph_corpus.GraphCorpus', which cannot be" in error(file({**good, "webs": code}))
    assert "two webs have one name" in error(file({**good, "webs": [*good["webs"], *good["webs"]]}))
    assert "give a larger web, or a track file with fewer seeds" in error(file({**good, "seeds": 61}))
    few = ("--contest-web", small.corpus, "-s", f"SCORER_MODEL={small.model}", "--half", "tuning")
    assert "has 10 hosts, but tuning on a half needs 20" in error(track, *few)
    assert error(track, "--policies", "nowhere.py").startswith("nowhere.py cannot be read: ")
    assert "cannot be loaded" in error(track, "--policies", "linkk")
    assert "two are called link" in error(track, "--policies", "link,link")
    (tmp_path / "bad.py").write_text("1 / 0\n")
    assert "cannot be loaded (ZeroDivisionError" in error(track, "--policies", tmp_path / "bad.py")
    content = results(held)
    assert "has format 9; this version reads format 1; make it again: " in error(file({**content, "format": 9}))
    content["crawls"][3]["found"][2] = "many"
    assert "is damaged" in error(file(content))
    content = results(held)
    content["crawls"].append({**content["crawls"][0], "set": SETS})
    assert "its crawls are not those of its webs, policies and sets of seeds" in error(file(content))
    content = results(held)
    content["webs"][0]["name"] = "../small"
    assert "is damaged" in error(file(content))
    for more in (("--policies", "link"), ("--contest-web", small.corpus), ("--half", "tuning")):
        assert "holds results, whose report is made again as they are" in error(held / "contest.json", *more)
    assert not (tmp_path / "out/contest.json").exists()
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out/mine.txt").touch()
    assert "exists already" in error(track)

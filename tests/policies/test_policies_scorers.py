"""Policies that look ahead by other scorers, their ensembles, and the order of scores."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Sequence
from pathlib import Path

import pytest
from graph_corpus import GraphCorpus
from hypothesis import given, strategies as st
from policy_helpers import new_crawl, new_policy

from crawl4llm.base.errors import InputError
from crawl4llm.policies import Candidate, Rating
from crawl4llm.policies.ensemble import ZScore
from crawl4llm.scoring import ScoringOptions, parse_weights

TEXTS = {"a": "0.25 words", "b": "0.75", "c": "0.5 some more words", "empty": " \n"}
GRAPH = GraphCorpus({key: [] for key in (*TEXTS, "damaged")}, TEXTS, corrupt=["damaged"])


class Vowels:
    """A scorer of somebody else's."""

    digest = "1" * 64

    @classmethod
    def from_options(cls, options: ScoringOptions) -> Vowels:
        return cls()

    def score(self, texts: Sequence[str]) -> list[float]:
        return [float(sum(text.count(vowel) for vowel in "aeiou")) for text in texts]


VOWELS = f"{__name__}.Vowels"


def ratings(*keys: str, **settings: object) -> list[Rating]:
    found = [Candidate(key, "", 1, None) for key in keys]
    return asyncio.run(new_policy(GRAPH, **settings).score(found))


def scores(*keys: str, **settings: object) -> list[float | None]:
    return [rated.score for rated in ratings(*keys, **settings)]


@pytest.mark.parametrize("policy", ["length", "scorer:length", "crawl4llm.policies.length.Policy"])
def test_length(policy: str) -> None:
    assert ratings("a", "b", "empty", "gone", "damaged", url_policy=policy) == [
        Rating(10.0),
        Rating(4.0),
        Rating(0.0),
        Rating(None, "http_404"),
        Rating(None, "corrupt_record"),
    ]


def test_a_scorer_of_ones_own_by_its_path() -> None:
    assert scores("a", "b", "c", url_policy=f"scorer:{VOWELS}") == [1, 0, 5]
    identity = new_policy(GRAPH, url_policy=f"scorer:{VOWELS}").identity()
    assert identity == {"policy_scorers": {VOWELS: f"sha256:{Vowels.digest}"}}


def test_the_scorer_of_influence_by_its_name() -> None:
    """It is not loaded a second time: the workers have it."""
    assert scores("a", "b", url_policy="scorer:fasttext") == [0.25, 0.75]


def test_an_ensemble_is_a_weighted_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ZScore, "seen", lambda _self, score: score)
    settings = {"url_policy": "ensemble"}
    assert scores("a", "b", "empty", "gone", ensemble_weights="fasttext:2,length:-0.1", **settings) == [
        pytest.approx(0.5 - 1.0),
        pytest.approx(1.5 - 0.4),
        0.0,
        None,
    ]
    assert scores("c", ensemble_weights=f"{VOWELS} : 1e1", **settings) == [50.0]


def test_an_ensembles_scores_are_normalised_by_those_before() -> None:
    settings = {"url_policy": "ensemble", "ensemble_weights": "fasttext:1,length:0.5"}
    found = scores("b", "gone", "a", "c", **settings)
    assert found[:3] == [0.0, None, pytest.approx(-1 + 0.5)]
    assert found[3] == pytest.approx(0.0 + 0.5 * (19 - 11) / statistics.pstdev([4, 10, 19]))


def test_an_ensemble_looks_at_each_page_once() -> None:
    corpus = GraphCorpus({key: [] for key in TEXTS}, TEXTS)
    policy = new_policy(corpus, url_policy="ensemble", ensemble_weights="fasttext:1,length:0.5")
    asyncio.run(policy.score([Candidate(key, "", 0, None) for key in "ab"]))
    assert corpus.lookups == {("text", "a"): 1, ("text", "b"): 1}


def test_an_ensemble_without_weights_says_what_to_set() -> None:
    with pytest.raises(InputError, match=r"^ENSEMBLE_WEIGHTS is not set; give "):
        new_policy(GRAPH, url_policy="ensemble")


@given(st.lists(st.integers(-(10**6), 10**6).map(lambda number: number / 8), min_size=1, max_size=30))
def test_the_normaliser_knows_the_scores_so_far(seen: list[float]) -> None:
    zscore = ZScore()
    for number, score in enumerate(seen, start=1):
        so_far = seen[:number]
        deviation = statistics.pstdev(so_far)
        normal = zscore.seen(score)
        expected = (score - statistics.fmean(so_far)) / deviation if deviation else 0.0
        assert normal == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_constant_scores_are_normalised_to_nothing() -> None:
    normaliser = ZScore()
    assert [normaliser.seen(0.1) for _ in range(5)] == [0.0] * 5


def test_weights() -> None:
    assert parse_weights("fasttext:1, length : -0.5") == {"fasttext": 1.0, "length": -0.5}
    assert parse_weights("my.own.Scorer:2e-3") == {"my.own.Scorer": 0.002}


# -- order ------------------------------------------------------------------------------------------------------------

WEB = GraphCorpus(
    {"s": ["a", "b", "c"], "a": ["d"], "b": [], "c": ["a"], "d": []},
    {"s": "0.5", "a": "0.9", "b": "0.3", "c": "0.7", "d": "0.1"},
)


@pytest.mark.parametrize(("order", "ids"), [("desc", "sacbd"), ("asc", "sbcad")])
def test_the_lowest_scores_first(tmp_path: Path, order: str, ids: str) -> None:
    driven = new_crawl(WEB, tmp_path / order, order=order, crawl_batch_size=1).run("s")
    driven.close()
    assert "".join(driven.ids) == ids
    assert [line["influence"] for line in driven.lines] == [float(WEB.texts[key]) for key in ids]


def test_lowest_first_goes_for_new_scores_too(tmp_path: Path) -> None:
    driven = new_crawl(WEB, tmp_path / "run", order="asc", url_policy="backlink", crawl_batch_size=1).run("s", "c")
    driven.close()
    assert "".join(driven.ids) == "csbad"
    assert [line["priority"] for line in driven.lines] == [0, 0, -1, -2, -1]


def test_random_in_ascending_order_is_random_all_the_same(tmp_path: Path) -> None:
    """Its clock goes by its own scores."""
    policy = new_policy(WEB, url_policy="random", order="asc")
    assert policy.name == "asc(random)"
    runs = {
        tuple(new_crawl(WEB, tmp_path / str(seed), url_policy="random", order="asc", crawl_seed=seed).run("s").ids)
        for seed in range(20)
    }
    assert len(runs) > 3


def test_the_draw_of_random_static_depends_on_seed_and_key() -> None:
    one, same, other = (scores("a", "b", url_policy="random_static", crawl_seed=seed) for seed in (1, 1, 2))
    assert one == same != other
    assert len(set(one + other)) == 4
    assert all(score is not None and 0 < score <= 1 for score in one)

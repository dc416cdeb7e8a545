"""The contract of policies, over every one that comes with the project."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from importlib import import_module

import pytest
from graph_corpus import URL, GraphCorpus, NumberScorer

from crawl4llm import policies, rating
from crawl4llm.errors import InputError
from crawl4llm.frontier import Entry
from crawl4llm.options import Options
from crawl4llm.policies import BasePolicy, Candidate, Policy, Rating, known_policies, load_policy
from crawl4llm.rating import PageRater
from crawl4llm.workers import PageWorkers

LINKS: dict[str, list[str | None]] = {
    "a": ["b", "c", "gone"],
    "b": ["c", None, "damaged"],
    "c": ["c", "a"],
    "empty": ["c"],
    "damaged": [],
}
TEXTS = {"a": "0.25 words", "b": "0.75", "c": "0.5", "empty": " \n"}
FOUND = [*LINKS, "gone"]


class Fixed(BasePolicy):
    """A policy of somebody else's."""

    name = "fixed"

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        return [Rating(1.0) for _ in candidates]


def graph() -> GraphCorpus:
    return GraphCorpus(LINKS, TEXTS, corrupt=["damaged"])


def new_policy(name: str, corpus: GraphCorpus, **options: object) -> Policy:
    workers = PageWorkers(PageRater(corpus, NumberScorer(), extractor=None), processes=0, time_limit=1.0)
    return load_policy(name)(workers, Options(**options))  # type: ignore[arg-type]


def candidates(*keys: str, parent: str | None = "a") -> list[Candidate]:
    return [Candidate(key, f"{URL}{key}", 1, parent, f"to {key}") for key in keys]


def score(policy: Policy, *keys: str) -> list[Rating]:
    return asyncio.run(policy.score(candidates(*keys)))


@pytest.fixture(params=known_policies())
def name(request: pytest.FixtureRequest) -> str:
    """The name of every policy."""
    found: str = request.param
    return found


# -- contract ---------------------------------------------------------------------------------------------------------


def test_a_policy_is_named_as_its_module(name: str) -> None:
    policy = load_policy(name)
    assert policy is import_module(f"{policies.__name__}.{name}").Policy
    assert policy.name == name
    assert policy.__doc__
    assert isinstance(policy.looks_ahead, bool)
    assert set(policy.corpus_parts) <= {"text", "html", "outlinks", "inlinks"}


def test_each_candidate_has_one_rating(name: str) -> None:
    ratings = score(new_policy(name, graph()), *FOUND)
    assert len(ratings) == len(FOUND)
    for rated in ratings:
        if rated.score is None:
            assert rated.reason
        else:
            assert math.isfinite(rated.score)


def test_no_candidates_no_ratings(name: str) -> None:
    assert score(new_policy(name, graph())) == []


def test_ratings_stand_in_the_order_of_the_candidates(name: str) -> None:
    forward = score(new_policy(name, graph()), *FOUND)
    backward = score(new_policy(name, graph()), *reversed(FOUND))
    assert dict(zip(FOUND, forward, strict=True)) == dict(zip(reversed(FOUND), backward, strict=True))


def test_equal_crawls_have_equal_ratings(name: str) -> None:
    runs = []
    for _ in range(2):
        policy = new_policy(name, graph(), crawl_seed=5)
        runs.append(score(policy, "a", "b"))
        policy.dequeued([Entry("b", f"{URL}b", -0.5, 0, None), Entry("a", f"{URL}a", -0.75, 0, None)])
        policy.dequeued([])
        runs[-1] += score(policy, *FOUND[2:])
    assert runs[0] == runs[1]


def test_only_a_policy_that_looks_ahead_reads_the_candidates(name: str) -> None:
    corpus = graph()
    policy = new_policy(name, corpus)
    score(policy, *FOUND)
    read = {part for part, _ in corpus.lookups} & {"page", "text", "html", "outlinks"}
    assert bool(read) == policy.looks_ahead
    assert {part for part, _ in corpus.lookups} <= {"text"} | set(policy.corpus_parts)


@pytest.mark.parametrize("ahead", [name for name in known_policies() if load_policy(name).looks_ahead])
def test_a_policy_that_looks_ahead_scores_by_influence(ahead: str) -> None:
    policy = new_policy(ahead, graph())
    rater = PageRater(graph(), NumberScorer(), extractor=None)
    assert score(policy, *FOUND) == rating.rate_all(rater, rating.influence, FOUND)


# -- each for itself --------------------------------------------------------------------------------------------------


def test_influence() -> None:
    assert score(new_policy("influence", graph()), "b", "a", "empty", "gone", "damaged") == [
        Rating(0.75),
        Rating(0.25),
        Rating(0.0, "no_text"),
        Rating(None, "http_404"),
        Rating(None, "corrupt_record"),
    ]


def test_indegree() -> None:
    assert score(new_policy("indegree", graph()), "c", "a", "b", "empty", "gone") == [
        Rating(4.0),
        Rating(1.0),
        Rating(1.0),
        Rating(0.0),
        Rating(None, "http_404"),
    ]


def scores(policy: Policy, keys: Sequence[str]) -> dict[str, float]:
    """Scores by key, of a policy that scores all."""
    return {key: rated.score for key, rated in zip(keys, score(policy, *keys), strict=True) if rated.score is not None}


def pop(policy: Policy, queued: dict[str, float]) -> str:
    """Take the best document out."""
    best = min(queued, key=lambda key: (-queued[key], key))
    policy.dequeued([Entry(best, "", queued.pop(best), 0, None, attempts=1)])
    return best


def test_random_is_uniform_over_all_that_is_queued() -> None:
    """Of four documents that wait and four that are new, each is the next in an eighth of the crawls."""
    draws = 2000
    taken = dict.fromkeys("abcdefghij", 0)
    for seed in range(draws):
        policy = new_policy("random", graph(), crawl_seed=seed)
        queued = scores(policy, "abcdef")
        gone = {pop(policy, queued), pop(policy, queued)}
        queued |= scores(policy, "ghij")
        best = pop(policy, queued)
        assert best not in gone
        taken[best] += 1
    new = sum(taken[key] for key in "ghij")
    deviation = math.sqrt(draws / 4)
    assert abs(new - draws / 2) < 4 * deviation
    assert all(abs(taken[key] - draws / 8) < 4 * math.sqrt(draws * 7 / 64) for key in "ghij")


def test_random_depends_on_the_seed_alone() -> None:
    one, same, other = [scores(new_policy("random", graph(), crawl_seed=seed), FOUND) for seed in (1, 1, 2)]
    assert one == same != other


def test_a_document_that_comes_back_does_not_turn_back_the_clock_of_random() -> None:
    """A lease that is given back is popped a second time, at its old score."""
    policy, same = new_policy("random", graph()), new_policy("random", graph())
    early, late = Entry("early", "", -0.5, 0, None), Entry("late", "", -3.0, 0, None)
    policy.dequeued([early, late])
    policy.dequeued([early])
    same.dequeued([early, late])
    assert score(policy, *FOUND) == score(same, *FOUND)


# -- finding one ------------------------------------------------------------------------------------------------------


def test_known_policies_are_the_modules() -> None:
    assert {"influence", "indegree", "random"} <= set(known_policies())
    assert known_policies() == sorted(known_policies())


def test_a_policy_of_ones_own_is_loaded_by_its_path() -> None:
    assert load_policy(f"{__name__}.Fixed").__qualname__ == "Fixed"


@pytest.mark.parametrize(
    "path",
    [
        "best",
        "no_such_module.Policy",
        "crawl4llm.policies.influence.NoSuchClass",
        "crawl4llm.policies.influence",
        "os.path.join",
        f"{__name__}.LINKS",
        "collections.Counter",
        ".",
        ".Policy",
        "..policies.Policy",
        "crawl4llm.",
    ],
)
def test_what_is_no_policy_is_refused(path: str) -> None:
    with pytest.raises(InputError) as error:
        load_policy(path)
    message = str(error.value)
    assert message.startswith(f"URL_POLICY = {path!r} ")
    assert f"known are: {', '.join(known_policies())}" in message
    assert "\n" not in message

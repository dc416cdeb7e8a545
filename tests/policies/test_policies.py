"""The contract of policies, over every one that comes with the project, and over what wraps one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import python
from driven_crawl import Driven, pages_at_once
from graph_corpus import URL, GraphCorpus, NumberScorer
from policy_helpers import SEEDS, VARIANTS, Told, new_crawl, new_policy, page, random_web, variants, write_ranks
from policy_runs import digests

from crawl4llm import policies
from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Link
from crawl4llm.frontier import Entry
from crawl4llm.policies import BasePolicy, Candidate, CrawledPage, Policy, Rating, known_policies, load_policy
from crawl4llm.scoring import rating
from crawl4llm.scoring.rating import PageRater

LINKS: dict[str, list[str | None]] = {
    "a": ["b", "c", "gone"],
    "b": ["c", None, "damaged"],
    "c": ["c", "a"],
    "empty": ["c"],
    "damaged": [],
}
TEXTS = {"a": "0.25 words", "b": "0.75", "c": "0.5", "empty": " \n"}
FOUND = [*LINKS, "gone"]


def is_for_live_crawls(policy: type[Policy]) -> bool:
    return not policy.looks_ahead and not policy.corpus_parts


class Fixed(BasePolicy):
    """A policy of somebody else's."""

    name = "fixed"

    async def score(self, candidates: Sequence[Candidate]) -> list[Rating]:
        return [Rating(1.0) for _ in candidates]


def graph() -> GraphCorpus:
    return GraphCorpus(LINKS, TEXTS, corrupt=["damaged"])


def candidates(*keys: str, parent: str | None = "p") -> list[Candidate]:
    return [Candidate(key, f"{URL}{key}", 1, parent, f"to {key}") for key in keys]


def score(policy: Policy, *keys: str) -> list[Rating]:
    """Ratings of documents that were found on one page."""
    links = [Link(f"{URL}{key}", key, f"to {key}", False) for key in keys]
    policy.crawled(CrawledPage(Entry("p", f"{URL}p", 0.5, 0, None, attempts=1), 0.25, links))
    return asyncio.run(policy.score(candidates(*keys)))


@pytest.fixture(scope="module")
def settings_of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Settings by variant."""
    return variants(write_ranks(tmp_path_factory.mktemp("ranks") / "ranks.tsv"))


@pytest.fixture(params=VARIANTS)
def settings(request: pytest.FixtureRequest, settings_of: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The settings of each policy and wrapper."""
    return settings_of[request.param]


@pytest.fixture
def crawl_web(tmp_path: Path, settings: dict[str, Any]) -> Callable[..., Driven]:
    """Crawls the web of several hosts."""
    numbers = iter(range(100))

    def crawl(**more: Any) -> Driven:
        return new_crawl(random_web(), tmp_path / str(next(numbers)), **settings, **more)

    return crawl


# -- contract ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", known_policies())
def test_a_policy_is_named_as_its_module(name: str) -> None:
    policy = load_policy(name)
    assert policy is import_module(f"{policies.__name__}.{name}").Policy
    assert policy.name == name
    assert policy.__doc__
    assert {type(flag) for flag in (policy.looks_ahead, policy.scores_influence, policy.reranks)} == {bool}
    assert policy.looks_ahead or not policy.scores_influence
    assert set(policy.corpus_parts) <= {"text", "html", "outlinks", "inlinks"}


def test_each_candidate_has_one_rating(settings: dict[str, Any]) -> None:
    ratings = score(new_policy(graph(), **settings), *FOUND)
    assert len(ratings) == len(FOUND)
    for rated in ratings:
        if rated.score is None:
            assert rated.reason
        else:
            assert math.isfinite(rated.score)


def test_no_candidates_no_ratings(settings: dict[str, Any]) -> None:
    policy = new_policy(graph(), **settings)
    assert asyncio.run(policy.score([])) == []
    assert list(policy.reranked()) == []
    assert score(policy) == []


def test_ratings_stand_in_the_order_of_the_candidates(settings: dict[str, Any]) -> None:
    """Each for itself, but where the order in which documents are discovered counts."""
    if settings["url_policy"] in {"breadth_first", "ensemble", "link"}:
        return
    forward = score(new_policy(graph(), **settings), *FOUND)
    backward = score(new_policy(graph(), **settings), *reversed(FOUND))
    assert dict(zip(FOUND, forward, strict=True)) == dict(zip(reversed(FOUND), backward, strict=True))


def test_only_a_policy_that_looks_ahead_reads_the_candidates(settings: dict[str, Any]) -> None:
    corpus = graph()
    policy = new_policy(corpus, **settings)
    score(policy, *FOUND)
    if not settings.get("hot_queue_topic"):  # which reads the pages that were crawled
        read = {part for part, _ in corpus.lookups} & {"page", "text", "html", "outlinks"}
        assert bool(read) == policy.looks_ahead
        assert {part for part, _ in corpus.lookups} <= {"text"} | set(policy.corpus_parts)
    elif not policy.looks_ahead:
        assert {key for _, key in corpus.lookups} <= {"p"}


@pytest.mark.parametrize("name", [name for name in known_policies() if is_for_live_crawls(load_policy(name))])
def test_a_document_that_was_never_scored_does_no_harm(name: str, tmp_path: Path) -> None:
    """The target of a redirect to another owner comes to the frontier with the score of what led to it."""
    settings = variants(write_ranks(tmp_path / "ranks"))[name]
    told = Told(**settings)
    told.seeds("source", "page")
    told.policy.dequeued([Entry("source", "http://source", 1.0, 0, None, attempts=1)])
    told.pages(page("page", 0.5, "target", "found"), scope=["target"])
    told.pages(page("found", 0.4, "target", "later"), scope=["target"])
    told.policy.dequeued([Entry("target", "http://target", 1.0, 0, "source", attempts=1, hops=1)])
    told.pages(page("target", 0.3, "last"))
    assert {"later", "last"} <= told.scores.keys()
    again = new_policy(GraphCorpus({}), **settings)
    again.load(told.policy.save())
    assert again.save() == told.policy.save()


@pytest.mark.parametrize("ahead", [name for name in known_policies() if load_policy(name).scores_influence])
def test_a_policy_that_scores_influence_does(ahead: str) -> None:
    rater = PageRater(graph(), NumberScorer(), extractor=None)
    assert score(new_policy(graph(), url_policy=ahead), *FOUND) == rating.rate_all(rater, rating.influence, FOUND)


@pytest.mark.parametrize("batch_size", [0, 1, 4])
def test_slices_and_the_order_of_answers_leave_no_mark(crawl_web: Callable[..., Driven], batch_size: int) -> None:
    whole = crawl_web(crawl_batch_size=batch_size).run(*SEEDS)
    assert len(whole.lines) > 35
    assert all(math.isfinite(line["priority"]) for line in whole.lines)
    assert whole.crawl.policy.reranks is bool(whole.figures.get("frontier/reranked"))
    assert {line["influence"] is None for line in whole.lines} == {True, False} or whole.crawl.policy.looks_ahead
    for slices in (1, 3):
        with pages_at_once(slices):
            again = crawl_web(crawl_batch_size=batch_size).run(*SEEDS, shuffled_by=slices)
        assert again.lines == whole.lines
        assert again.crawl.policy.save() == whole.crawl.policy.save()


def test_a_crawl_goes_on_from_what_was_saved(crawl_web: Callable[..., Driven], settings: dict[str, Any]) -> None:
    whole = crawl_web(crawl_batch_size=1).run(*SEEDS)
    resumed = crawl_web(crawl_batch_size=1)
    resumed.start(*SEEDS)
    while not resumed.crawl.finished:
        state = resumed.crawl.policy.save()
        assert isinstance(state, bytes)
        resumed.take_policy(new_policy(resumed.corpus, **settings))
        resumed.crawl.policy.load(state)
        assert resumed.crawl.policy.save() == state
        resumed.batch()
    assert resumed.lines == whole.lines
    assert resumed.crawl.policy.save() == whole.crawl.policy.save()


def test_a_policy_is_told_of_documents_that_come_back(crawl_web: Callable[..., Driven]) -> None:
    """Whatever fails, is given back or is tried again: no policy stumbles over it."""
    driven = crawl_web(crawl_batch_size=0, crawl_max_attempts=2)
    driven.start(*SEEDS)
    step = 0
    while not driven.crawl.finished:
        for lease in driven.dequeue():
            step += 1
            if step % 5 == 0:
                driven.crawl.failed(lease, "timeout", final=False)
            elif step % 7 == 0:
                asyncio.run(driven.crawl.wind_up())
            else:
                driven.fetch(lease)
        if driven.crawl.can_advance:
            driven.advance()
    assert len(driven.ids) > 30


def test_hash_randomisation_leaves_no_mark(tmp_path: Path) -> None:
    ranks = write_ranks(tmp_path / "ranks.tsv")
    run = python("-m", "policy_runs", ranks, env={"PYTHONHASHSEED": "1"}, check=True)
    found = run.stdout.splitlines()
    assert found == digests(ranks)
    assert [line.split()[0] for line in found] == VARIANTS


def test_identity_tells_what_decides_the_scores(settings: dict[str, Any]) -> None:
    identity = new_policy(random_web(), **settings).identity()
    own = set(settings) - {"url_policy", "order"}
    assert own <= set(identity), "settings that change the order of a crawl are part of its identity"


# -- each for itself --------------------------------------------------------------------------------------------------


def test_influence() -> None:
    assert score(new_policy(graph(), url_policy="influence"), "b", "a", "empty", "gone", "damaged") == [
        Rating(0.75),
        Rating(0.25),
        Rating(0.0, "no_text"),
        Rating(None, "http_404"),
        Rating(None, "corrupt_record"),
    ]


def test_indegree() -> None:
    assert score(new_policy(graph(), url_policy="indegree"), "c", "a", "b", "empty", "gone") == [
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
    draws = 1000
    taken = dict.fromkeys("abcdefghij", 0)
    for seed in range(draws):
        policy = new_policy(graph(), url_policy="random", crawl_seed=seed)
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
    one, same, other = [scores(new_policy(graph(), url_policy="random", crawl_seed=seed), FOUND) for seed in (1, 1, 2)]
    assert one == same != other


def test_a_document_that_comes_back_does_not_turn_back_the_clock_of_random() -> None:
    """A lease that is given back is popped a second time, at its old score."""
    policy, same = new_policy(graph(), url_policy="random"), new_policy(graph(), url_policy="random")
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

"""benchmarks.link: real crawls of a small web by all its policies, and what is made of recalls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from crawl_helpers import Web

from benchmarks import link, policies
from benchmarks.link_scorers import REPORTING, TUNING, compression, function_words
from benchmarks.policies import Recalls
from benchmarks.policy_webs import RememberedScores, open_web

SENTENCE = "The crawler takes the best page of the frontier, and it goes on with the links that are on the page. "
LISTING = "std::sort std::find std::copy std::move std::swap std::fill\n"


@pytest.fixture(scope="module")
def subject(demo_web: Web) -> Iterator[str]:
    (name,) = link.prepare(open_web("small", demo_web.corpus), {"its own": RememberedScores(demo_web.model)})
    yield name
    del policies._subjects[name]


@pytest.mark.parametrize("policy", link.CRAWLED_BY)
def test_a_policy_crawls_half_of_a_web(subject: str, policy: str) -> None:
    found = policies.crawl(subject, policy, 0)
    by = found.by_crawled if policy == link.AHEAD else found.by_fetched
    assert 0 < by[0] < by[1] < by[2] <= by[3] <= 1
    assert by[2] > 0.3, "a page drawn at random is found by then with a probability of 0.25"
    assert set(found.found_on) <= set(found.on_hosts)
    assert all(count <= found.on_hosts[host] for host, count in found.found_on.items())
    if policy != link.AHEAD:
        assert sum(found.found_on.values()) / sum(found.on_hosts.values()) == pytest.approx(by[2])


def recalls(quarter: float, **found: int) -> Recalls:
    by = (quarter / 4, quarter / 2, quarter, quarter)
    return Recalls(by, by, 1.0, {"a.test": 20, "b.test": 20}, found)


def crawls(ours: float, theirs: float, bound: float) -> link.Crawls:
    return {
        link.LINK: [recalls(ours + 0.01, **{"a.test": 1, "b.test": 9}), recalls(ours - 0.01, **{"a.test": 2})],
        link.BASE: [recalls(theirs), recalls(theirs)],
        link.BOUND: [recalls(bound, **{"a.test": 12, "b.test": 18}), recalls(bound, **{"a.test": 12, "b.test": 9})],
        link.AHEAD: [recalls(bound), recalls(bound)],
    }


def test_shares_are_of_the_gap_and_the_worst_comes_first() -> None:
    good, bad, narrow = crawls(0.7, 0.4, 0.8), crawls(0.3, 0.4, 0.8), crawls(0.5, 0.49, 0.52)
    assert link.share(good, link.BOUND, link.QUARTER) == pytest.approx(0.75)
    assert link.share(narrow, link.BOUND, link.QUARTER) is None
    assert [link.is_worse(one, link.QUARTER) for one in (good, bad, narrow)] == [False, True, False]
    assert link.dropped(good) == 11, "of a.test in the first crawl; the second finds a tenth of it"
    tables, figures = link.judge({"good": good, "narrow": narrow, "bad": bad})
    assert [row[0] for row in tables[0].rows] == ["bad", "good", "narrow"]
    assert tables[0].rows[2][3] == "-"
    assert {figure.what: figure.value for figure in figures} == {
        "webs and scorers, at 10 and 25%, on which link is worse than parent_mean": 2,
        "share of the bound at 25%, median": pytest.approx(0.25),
        "share of the bound at 25%, worst": pytest.approx(-0.25),
        "share of the bound at 10%, median": pytest.approx(0.25),
    }


def test_scorers_that_are_no_models_put_prose_before_lists() -> None:
    for rule in (function_words, compression):
        assert 0 <= rule(LISTING * 100) < rule("".join(f"{SENTENCE}{n * 7919} " for n in range(50))) <= 1, rule
        assert rule("short") == 0


def test_no_scorer_serves_both_to_tune_and_to_report() -> None:
    assert not set(TUNING) & set(REPORTING)
    assert not set(link.TUNING_WEBS) & set(link.REPORTED_WEBS)

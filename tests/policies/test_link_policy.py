"""The policy ``link`` and what it learns with."""

from __future__ import annotations

import random
from array import array

import pytest
from policy_helpers import Told, page

pytest.importorskip("vowpalwabbit", reason="needs Vowpal Wabbit")
from vowpalwabbit import Workspace

from crawl4llm.base.errors import InputError
from crawl4llm.policies import _learning as learner
from crawl4llm.policies import link
from crawl4llm.policies._learning import (
    Learner,
    RecentRanks,
    RunningMeans,
    Waiting,
    anchor_features,
    as_text,
    places_of,
    url_features,
    worst_of,
)

# -- features ---------------------------------------------------------------------------------------------------------


def shared_features(one: str, two: str) -> int:
    return len({*url_features(one, 0)} & {*url_features(two, 0)})


def test_urls_share_what_they_have_in_common() -> None:
    url = "http://docs.site.example/guide/setUp-2024.html"
    assert shared_features(url, "http://docs.site.example/guide/set_up-1999.html") > shared_features(
        url, "http://docs.site.example/api/Frame.html"
    )
    assert shared_features(url, "http://docs.site.example/api/x.html") > shared_features(url, "http://other.test/y")
    assert len({*url_features(url, 1)} - {*url_features(url, 2)}) == 1
    assert url_features(url, 10) == url_features(url, 50)


@pytest.mark.parametrize("url", ["", "http://", "http://[", "http://h", "http://h/" + "a/" * 5000, "x:\udc80 ?q=\0"])
def test_any_url_has_features(url: str) -> None:
    features = [*url_features(url, 0), *places_of(url), *anchor_features("a \udc80 b", url, boilerplate=True)]
    assert len(features) < 150
    assert array("I", features)


def test_places_go_from_wide_to_narrow() -> None:
    host, folder, inner = places_of("http://h.test/a/b/page.html")
    assert places_of("http://h.test/") == [host]
    assert places_of("http://h.test/a/other?x=/c/d") == [host, folder]
    assert places_of("http://h.test/a/b/") == [host, folder, inner]


def test_an_anchor_is_words_and_look() -> None:
    url = "http://h.test/"
    one, two = ({*anchor_features(text, url, boilerplate=False)} for text in ("std::sort()", "foo::bar()"))
    assert one & two
    assert one != two
    assert {*anchor_features("Home", url, boilerplate=True)} != {*anchor_features("Home", url, boilerplate=False)}


# -- means, ranks -----------------------------------------------------------------------------------------------------


def test_a_mean_leans_on_a_larger_population() -> None:
    means: RunningMeans[str] = RunningMeans(10)
    assert means.shrunken("a", 0.5, 2) == 0.5
    means.add("a", 1.0)
    means.add("a", 0.5)
    assert means.shrunken("a", 0.5, 2) == 0.625
    assert means.count("a") == 2
    assert means.count("b") == 0


def test_means_not_added_to_for_longest_are_forgotten() -> None:
    means: RunningMeans[str] = RunningMeans(2)
    for key in ("a", "b", "a", "c"):
        means.add(key, 1.0)
    assert [means.count(key) for key in "abc"] == [2, 0, 1]
    again: RunningMeans[str] = RunningMeans(2)
    again.load(means.save())
    again.add("d", 1.0)
    assert [again.count(key) for key in "abcd"] == [0, 0, 1, 1]


def test_a_rank_is_the_place_among_the_last_thousand_pages() -> None:
    ranks = RecentRanks()
    for number in range(1000):
        ranks.add(number / 1000)
    assert ranks.add(0.9995) == pytest.approx((999.5 / 1000) ** 4)
    assert ranks.add(-1.0) == pytest.approx((0.5 / 1000) ** 4)
    again = RecentRanks()
    again.load(ranks.save())
    assert again.add(0.5) == ranks.add(0.5)
    assert len(ranks.save()) == 1000


def test_equal_scores_have_equal_ranks() -> None:
    ranks = RecentRanks()
    assert [ranks.add(0.5) for _ in range(5)] == [0.5**4] * 5


# -- the learner ------------------------------------------------------------------------------------------------------


def test_a_learner_that_has_learnt_nothing_predicts_the_prior() -> None:
    assert Learner().predict(-1.25, as_text([1, 2, 3]), [1.0, 0.5]) == pytest.approx(-1.25, abs=1e-5)


def test_a_learner_learns_what_features_mean() -> None:
    model = Learner()
    for _ in range(50):
        model.learn(0.0, "1 7", [1.0], 1.0)
        model.learn(0.0, "2 7", [1.0], 0.0)
        model.learn(0.0, "3 7", [1.0], 0.25)
    good, bad, quarter = (model.predict(0.0, f"{feature} 7", [1.0]) for feature in (1, 2, 3))
    assert good > 1
    assert bad < quarter < good
    assert bad < -1


def test_a_learner_goes_on_from_what_was_saved() -> None:
    draw = random.Random(3)
    model = Learner()

    def teach(one: Learner) -> float:
        features = as_text(draw.randrange(1 << 32) for _ in range(20))
        one.learn(draw.uniform(-2, 2), features, [draw.random()], draw.random())
        return one.predict(0.1, features, [0.5])

    for _ in range(100):
        teach(model)
    saved = model.save()
    again = Learner()
    again.load(saved)
    assert again.save() == saved
    state = draw.getstate()
    went_on = [teach(again) for _ in range(100)]
    draw.setstate(state)
    assert went_on == [teach(model) for _ in range(100)]
    assert again.save() == model.save()


def test_a_learner_does_what_vowpal_wabbits_own_classes_do() -> None:
    draw, ours, theirs = random.Random(5), Learner(), Workspace(learner._OPTIONS)
    for _ in range(50):
        hashes = [draw.randrange(1 << 32) for _ in range(20)]
        prior, fact, target = draw.uniform(-2, 2), draw.random(), draw.random()
        text = f"{prior:.6f} |f {' '.join(map(str, hashes))} |d 0:{fact:.4f}"
        assert ours.predict(prior, as_text(hashes), [fact]) == theirs.predict(f"1 1 {text}")
        ours.learn(prior, as_text(hashes), [fact], target)
        theirs.learn(f"1 {target:.6f} {text}")
        theirs.learn(f"-1 {1 - target:.6f} {text}")


def test_without_vowpal_wabbit_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "Workspace", None)
    with pytest.raises(InputError, match="URL_POLICY link needs Vowpal Wabbit: pip install vowpalwabbit"):
        Told(url_policy="link")


# -- the policy -------------------------------------------------------------------------------------------------------


def site(told: Told, pages: int, *, power: int = 1) -> None:
    """Pages of one folder of which those called guide are good, and two that wait, linked by the same page."""
    draw = random.Random(1)
    told.seeds("h.test/")
    names = [
        f"h.test/{'guide' if number % 2 else 'ref'}_{'abcdefghij'[number % 10]}{number}" for number in range(pages)
    ]
    told.pages(page("h.test/", 0.5**power, *names, "h.test/guide_zz", "h.test/ref_zz"))
    for name in names:
        told.pages(page(name, (0.5 * draw.random() + 0.5 * ("guide" in name)) ** power))


def test_it_learns_which_words_tell_good_pages() -> None:
    told = Told(url_policy="link")
    site(told, 100)
    assert told.scores["h.test/guide_zz"] > 2 * told.scores["h.test/ref_zz"]


def test_only_the_order_of_influence_counts() -> None:
    one, two = Told(url_policy="link"), Told(url_policy="link")
    site(one, 40)
    site(two, 40, power=3)
    assert one.scores == two.scores


def test_seeds_come_first_whatever_links_to_them() -> None:
    told = Told(url_policy="link")
    told.seeds("h.test/", "h.test/late")
    told.pages(page("h.test/", 0.1, "h.test/late", "h.test/a"))
    assert told.scores["h.test/late"] == 1.0 > told.scores["h.test/a"]


def test_documents_of_good_folders_and_parents_come_first() -> None:
    told = Told(url_policy="link")
    told.seeds("h.test/")
    told.pages(
        page("h.test/", 0.5, *(f"h.test/{folder}/{number}" for folder in ("good", "bad") for number in range(9)))
    )
    for number in range(8):
        told.pages(page(f"h.test/good/{number}", 0.8 + number / 100), page(f"h.test/bad/{number}", number / 100))
    told.pages(page("h.test/good/8", 0.9, "other.test/x"), page("h.test/bad/8", 0.0, "other.test/y", "h.test/good/9"))
    assert told.scores["other.test/x"] > told.scores["other.test/y"]
    assert told.scores["h.test/good/9"] > told.scores["other.test/y"]


def test_a_better_link_moves_a_document_that_waits() -> None:
    told = Told(url_policy="link")
    told.seeds(*(f"h{number}.test/" for number in range(40)))
    told.pages(page("h0.test/", 0.1, "x.test/better", "x.test/same"))
    for number in range(1, 40):
        good = number % 4 == 0
        told.pages(page(f"h{number}.test/", 0.9 if good else 0.1, *(["x.test/better"] if good else [])))
    assert told.scores["x.test/better"] > 2 * told.scores["x.test/same"]


def test_the_worst_are_forgotten_and_keep_their_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_MOST_WAITING", 10)
    told = Told(url_policy="link")
    told.seeds(*(f"s.test/{number}" for number in range(60)))
    for number in range(40):
        told.pages(page(f"s.test/{number}", number / 40, f"h{number}.test/", f"h{number}.test/a"))
    state = told.policy.save()
    assert state.count(b'/a", ') < 15
    before = dict(told.scores)
    told.pages(*(page(f"s.test/{number}", 0.9, *before) for number in range(40, 60)))
    kept = [key for key, score in before.items() if told.scores.get(key) == score]
    assert len(kept) > 50
    assert len(kept) < len(before)


def test_the_worst_of_many() -> None:
    waiting = {key: Waiting(f"http://{key}") for key in "abcdefghijkl"}
    for number, one in enumerate(waiting.values()):
        one.score = (number * 5) % 12
    assert worst_of(waiting, 12) == []
    assert [waiting[key].score for key in worst_of(waiting, 10)] == [0, 1, 2]

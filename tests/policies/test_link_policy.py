"""The policy ``link`` and what it learns with."""

from __future__ import annotations

import random
from array import array
from base64 import b64encode
from itertools import pairwise
from operator import attrgetter

import numpy as np
import pytest
from policy_helpers import Told, page

from crawl4llm.base.shapes import is_of
from crawl4llm.policies import _learning as learner, link
from crawl4llm.policies._features import anchor_features, parents_features, url_features
from crawl4llm.policies._learner import Learner, packed
from crawl4llm.policies._learning import PAGE, Lessons, RunningMeans, Waiting, turn_of, worst_of

# -- features ---------------------------------------------------------------------------------------------------------


def shared_features(one: str, two: str) -> int:
    return len({*url_features(one, 0).hashes} & {*url_features(two, 0).hashes})


def test_urls_share_what_they_have_in_common() -> None:
    url = "http://docs.site.example/guide/setUp-2024.html"
    assert shared_features(url, "http://docs.site.example/guide/set_up-1999.html") > shared_features(
        url, "http://docs.site.example/api/Frame.html"
    )
    assert shared_features(url, "http://docs.site.example/api/x.html") > shared_features(url, "http://other.test/y")
    assert len({*url_features(url, 1).hashes} - {*url_features(url, 2).hashes}) == 1
    assert url_features(url, 10) == url_features(url, 50)


@pytest.mark.parametrize("url", ["", "http://", "http://[", "http://h", "http://h/" + "a/" * 5000, "x:\udc80 ?q=\0"])
def test_any_url_has_features(url: str) -> None:
    of_url = url_features(url, 0)
    features = [*of_url.hashes, *anchor_features("a \udc80 b", url, boilerplate=True)]
    assert len(features) < 150
    assert array("I", features)
    assert set(of_url.places) < set(features)


def test_places_go_from_wide_to_narrow() -> None:
    host, folder, inner = url_features("http://h.test/a/b/page.html", 0).places
    assert url_features("http://h.test/", 1).places == [host]
    assert url_features("http://h.test/a/other?x=/c/d", 2).places == [host, folder]
    assert url_features("http://h.test/a/b/", 3).places == [host, folder, inner]


def test_an_anchor_is_words_and_look() -> None:
    url = "http://h.test/"
    one, two = ({*anchor_features(text, url, boilerplate=False)} for text in ("std::sort()", "foo::bar()"))
    assert one & two
    assert one != two
    assert {*anchor_features("Home", url, boilerplate=True)} != {*anchor_features("Home", url, boilerplate=False)}


def test_parents_are_told_apart_in_eighths() -> None:
    one, near, other = (parents_features(mean, 0.9) for mean in (0.5, 0.51, 0.7))
    assert one == near
    assert len({*one} & {*other}) == 1


# -- means ------------------------------------------------------------------------------------------------------------


def test_means_not_added_to_for_longest_are_forgotten() -> None:
    means: RunningMeans[str] = RunningMeans(2)
    for key in ("a", "b", "a", "c"):
        means.add(key, 1.0)
    assert [means.count(key) for key in "abc"] == [2, 0, 1]
    again: RunningMeans[str] = RunningMeans(2)
    again.load(means.save())
    again.add("d", 1.0)
    assert [again.count(key) for key in "abcd"] == [0, 0, 1, 1]


# -- the learner ------------------------------------------------------------------------------------------------------


def document(*features: int) -> bytes:
    """A document as a learner takes it."""
    return packed(features)


def predicted(model: Learner | Lessons, *documents: bytes) -> list[float]:
    return model.predict(documents)


def test_a_learner_that_has_learnt_nothing_predicts_even_odds() -> None:
    assert predicted(Learner(), document(1, 2, 3), document(7)) == [0, 0]


@pytest.mark.parametrize("together", [1, 3])
def test_a_learner_learns_what_features_mean(together: int) -> None:
    model = Learner()
    lessons = [(document(1, 7), 1.0), (document(2, 7), 0.0), (document(3, 7), 0.25)] * 50
    for start in range(0, len(lessons), together):
        model.learn(*zip(*lessons[start : start + together], strict=True))
    good, bad, quarter = predicted(model, *(document(feature, 7) for feature in (1, 2, 3)))
    assert good > 1
    assert bad < quarter < good
    assert bad < -1


@pytest.mark.parametrize("target", [0.0, 0.3, 1.0])
def test_no_step_goes_beyond_its_target(target: float) -> None:
    """However many features a document has, all of which share the step."""
    model, lesson = Learner(), document(*range(5000))
    distances = []
    for _ in range(5):
        distances.append(1 / (1 + np.exp(-predicted(model, lesson)[0])) - target)
        model.learn([lesson], [target])
    assert all(min(one, 0) - 1e-5 < two < max(one, 0) + 1e-5 for one, two in pairwise(distances))


def test_a_document_is_predicted_the_same_among_others() -> None:
    model, known = Learner(), [one for one, _ in documents(50)]
    model.learn(known, [0.7] * 50)
    assert predicted(model, *known) == [predicted(model, one)[0] for one in known]


def documents(number: int) -> list[tuple[bytes, float]]:
    """Documents with a score that one of their features tells."""
    draw = random.Random(3)
    found = []
    for _ in range(number):
        features = [draw.randrange(1 << 20) % 50 for _ in range(20)]
        found.append((document(*features), draw.random() + (7 in features)))
    return found


# -- lessons ----------------------------------------------------------------------------------------------------------


def test_what_is_taught_of_a_page_is_its_rank_among_all() -> None:
    lessons = Lessons(1000)
    for number in range(1000):
        lessons.add(document(1), number / 1000)
    assert lessons.add(document(1), 0.9995) == pytest.approx((1000.5 / 1001) ** 4)
    assert lessons.add(document(1), -1.0) == pytest.approx((0.5 / 1002) ** 4)
    equal = Lessons(1000)
    assert [equal.add(document(1), 0.5) for _ in range(20)] == [0.5**4] * 20


def test_once_they_have_grown_by_a_quarter_a_new_learner_is_taught_them_all() -> None:
    lessons, pages, renewed = Lessons(1000), documents(40), []
    for number, (page_, score) in enumerate(pages, 1):
        before = predicted(lessons, pages[0][0])
        lessons.add(page_, score)
        assert predicted(lessons, pages[0][0]) != before
        if lessons.is_new:
            renewed.append(number)
            ordered = sorted(score for _, score in pages[:number])
            new = Learner()
            for one, its_score in pages[:number] * 3:
                new.learn([one], [((ordered.index(its_score) + 0.5) / number) ** 4])
            assert predicted(lessons, pages[-1][0]) == predicted(new, pages[-1][0])
    assert renewed == [16, 20, 25, 32, 40]


def test_lessons_go_on_from_what_was_saved() -> None:
    lessons, pages = Lessons(30), documents(100)
    for number, page_and_score in enumerate(pages):
        again = Lessons(30)
        again.load(*lessons.save())
        assert again.save() == lessons.save()
        assert again.add(*page_and_score) == lessons.add(*page_and_score)
        assert predicted(again, pages[number - 1][0]) == predicted(lessons, pages[number - 1][0])
        assert len(lessons) <= 30 * 1.25, "the oldest are forgotten"
    assert [text for text, _ in lessons.save()[1]] == [as_text(page_) for page_, _ in pages[-len(lessons) :]]


def as_text(document: bytes) -> str:
    return b64encode(document).decode()


def test_pages_are_learnt_together_once_many_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_BEFORE", 4)
    lessons, pages = Lessons(1000), documents(60)
    unchanged = 0
    for page_and_score in pages:
        before = predicted(lessons, pages[0][0])
        lessons.add(*page_and_score)
        unchanged += predicted(lessons, pages[0][0]) == before
        again = Lessons(1000)
        again.load(*lessons.save())
        assert predicted(again, page_and_score[0]) == predicted(lessons, page_and_score[0])
    assert 20 < unchanged < 60


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0.5",
        "AAA=",
        "\u00e9",
        as_text(document(1) + b"\0"),
        as_text(document(1) + b"\xff\xff\xff\xff"),
    ],
)
def test_a_piece_that_is_no_document_is_refused(text: str) -> None:
    assert is_of(turn_of(PAGE))([5, [as_text(documents(1)[0][0]), 0.5]])
    assert not is_of(turn_of(PAGE))([5, [text, 0.5]])


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


def test_a_new_learner_ranks_the_best_at_once_and_the_others_in_their_turn() -> None:
    told = Told(url_policy="link")
    site(told, 40)
    waiting = [f"w.test/{number}" for number in range(400)]
    told.pages(page("late.test/", 0.5, *waiting))
    first = {key: told.scores[key] for key in waiting}
    for number in range(60):
        told.pages(page(f"other.test/{number}", number / 60))
    assert not [key for key in waiting if told.scores[key] == first[key]]


def test_a_better_link_moves_a_document_that_waits() -> None:
    told = Told(url_policy="link")
    told.seeds(*(f"h{number}.test/" for number in range(40)))
    told.pages(page("h0.test/", 0.1, "x.test/better", "x.test/same"))
    for number in range(1, 40):
        good = number % 4 == 0
        told.pages(page(f"h{number}.test/", 0.9 if good else 0.1, *(["x.test/better"] if good else [])))
    assert told.scores["x.test/better"] > 1.1 * told.scores["x.test/same"]


def test_the_worst_are_forgotten_and_keep_their_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link.Policy, "most", 10)
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
    assert worst_of(waiting, 12, attrgetter("score")) == []
    assert [waiting[key].score for key in worst_of(waiting, 10, attrgetter("score"))] == [0, 1, 2]

"""The contract of :class:`crawl4llm.base.pages.Corpus` as tests, to be run against every implementation.

A test class inherits from CorpusContract, sets the keys and provides the fixture ``corpus``: small, with all parts, and
with its URL index built.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import pickle
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from crawl4llm.base.errors import InputError, MissingRecord
from crawl4llm.base.pages import Corpus, PageRecord

LOOK_UPS = ("page", "text", "html", "outlinks", "inlinks")


class CorpusContract:
    """What holds for any corpus."""

    absent_key: str
    """A key that is well-formed, but not held."""
    malformed_key: str

    @pytest.fixture
    def corpus(self, tmp_path: Any) -> Corpus:
        raise NotImplementedError

    def test_keys_are_distinct_held_and_in_fixed_order(self, corpus: Corpus) -> None:
        keys = list(corpus.keys())
        assert len(set(keys)) == len(keys) == len(corpus) > 0
        assert keys == list(corpus.keys())
        assert all(key in corpus and corpus.is_key(key) for key in keys)

    def test_a_page_is_what_the_single_look_ups_give(self, corpus: Corpus) -> None:
        for key in list(corpus.keys()):
            page = corpus.page(key)
            assert page.key == key
            assert page.url
            assert page.date is None or re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", page.date)
            assert (page.html, page.text) == (corpus.html(key), None), "text is only read where there is no html"
            assert page.outlinks == corpus.outlinks(key)

    def test_links(self, corpus: Corpus) -> None:
        for key in list(corpus.keys()):
            for link in corpus.outlinks(key) + corpus.inlinks(key):
                assert link.key is None or corpus.is_key(link.key)
                assert isinstance(link.url, str)
                assert isinstance(link.anchor, str)
                assert isinstance(link.boilerplate, bool)

    @pytest.mark.parametrize("look_up", LOOK_UPS)
    def test_a_document_that_is_not_held(self, corpus: Corpus, look_up: str) -> None:
        for key in (self.absent_key, self.malformed_key):
            assert key not in corpus
            with pytest.raises(MissingRecord, match=re.escape(key)):
                getattr(corpus, look_up)(key)
        assert corpus.is_key(self.absent_key)
        assert not corpus.is_key(self.malformed_key)

    def test_what_is_no_string_is_not_held(self, corpus: Corpus) -> None:
        assert None not in corpus
        assert 7 not in corpus

    def test_sample_is_a_function_of_number_and_seed(self, corpus: Corpus) -> None:
        half = len(corpus) // 2
        drawn = corpus.sample(half, 7)
        assert len(set(drawn)) == half
        assert all(key in corpus for key in drawn)
        assert drawn == corpus.sample(half, 7)
        assert any(drawn != corpus.sample(half, seed) for seed in range(8, 12))
        assert sorted(corpus.sample(len(corpus), 1)) == sorted(corpus.keys())
        assert corpus.sample(0, 1) == []

    def test_sample_of_more_than_is_held(self, corpus: Corpus) -> None:
        with pytest.raises(InputError, match=str(len(corpus))):
            corpus.sample(len(corpus) + 1, 0)

    def test_every_document_is_found_by_its_url(self, corpus: Corpus) -> None:
        for key in list(corpus.keys()):
            url = corpus.page(key).url
            found = corpus.resolve(url)
            assert found is not None
            assert corpus.page(found).url == url

    def test_a_url_that_is_not_held(self, corpus: Corpus) -> None:
        assert corpus.resolve("https://no.such.host.example/page") is None

    def test_all_parts_are_held(self, corpus: Corpus) -> None:
        corpus.require("text", "html", "outlinks", "inlinks")

    def test_pickling_gives_the_same_corpus(self, corpus: Corpus) -> None:
        copy = pickle.loads(pickle.dumps(corpus))
        assert copy.identity() == corpus.identity()
        assert digest(copy) == digest(corpus)
        assert copy.resolve(corpus.page(next(corpus.keys())).url) is not None

    def test_a_closed_corpus_opens_its_files_again(self, corpus: Corpus) -> None:
        before = digest(corpus)
        corpus.close()
        assert digest(corpus) == before
        corpus.close()
        corpus.close()

    def test_identity_is_a_hex_digest(self, corpus: Corpus) -> None:
        assert re.fullmatch(r"[0-9a-f]{32,}", corpus.identity())
        assert corpus.identity() == corpus.identity()

    def test_forked_processes_share_open_files_without_harm(self, corpus: Corpus) -> None:
        expected = digest(corpus)
        assert in_forked_processes(4, lambda number: digest(corpus, order_seed=number)) == [expected] * 4
        assert digest(corpus) == expected


def digest(corpus: Corpus, order_seed: int | None = None) -> str:
    """Of all that can be looked up, read in some order."""
    keys = list(corpus.keys())
    if order_seed is not None:
        random.Random(order_seed).shuffle(keys)
    read: dict[str, tuple[PageRecord, str, object]] = {
        key: (corpus.page(key), corpus.text(key), corpus.inlinks(key)) for key in keys
    }
    return hashlib.sha256(repr(sorted(read.items(), key=lambda item: item[0])).encode()).hexdigest()


def in_forked_processes(count: int, work: Callable[[int], str]) -> list[str]:
    """What ``work`` returns in each of some processes that are forked from this one and run at once."""
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(count), context.Queue()

    def run(number: int) -> None:
        start.wait(timeout=600)
        results.put(work(number))

    processes = [context.Process(target=run, args=(number,)) for number in range(count)]
    for process in processes:
        process.start()
    found = [results.get(timeout=600) for _ in processes]
    for process in processes:
        process.join(timeout=600)
        assert process.exitcode == 0
    return found

"""Known texts: word for word or nearly, by the rule by which a crawl finds near duplicates, in any process."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from crawl4llm.base.errors import InputError
from crawl4llm.parts.known_texts.work import KnownTexts, record_of
from crawl4llm.scoring.signatures import SIGNATURE, are_alike, signature_of
from crawl4llm.tools._known_files import TEXT, URL, Spread, write_texts, write_urls

WORDS = [f"word{number}" for number in range(3000)]
KNOWN = 400


def prose(number: int, words: int = 200) -> list[str]:
    return random.Random(number).choices(WORDS, k=words)


def changed(number: int, share: float) -> str:
    """A text of which some of the words are others."""
    draw = random.Random(number)
    words = prose(number)
    for place in draw.sample(range(len(words)), round(share * len(words))):
        words[place] = draw.choice(WORDS)
    return " ".join(words)


def write(folder: Path, texts: Iterable[str], *, near: bool = True) -> Path:
    folder.mkdir()
    spread = Spread(folder / "spread", TEXT)
    records = b"".join(record_of(text, near=near) for text in texts)
    spread.add(np.frombuffer(records, dtype=TEXT))
    write_texts(spread, folder, folder / "texts.known", near=near)
    return folder / "texts.known"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> KnownTexts:
    texts = [" ".join(prose(number)) for number in range(KNOWN)]
    return KnownTexts(write(tmp_path_factory.mktemp("known") / "texts", [*texts, " \n", *texts, "Not found"]))


def test_known_word_for_word(known: KnownTexts) -> None:
    assert len(known) == KNOWN + 1
    for number in range(KNOWN):
        assert known.knows("\n ".join(prose(number)) + "\t", b"")
        assert not known.knows(" ".join(prose(number)[:-1]), b"")
    assert known.knows("Not found", b"")
    assert not known.knows("not found", b"")
    assert known.knows("not found", signature_of("not found"))
    assert not known.knows(" ", signature_of(" "))


def test_known_nearly_by_the_rule_of_near_duplicates(known: KnownTexts) -> None:
    """Just where one of the known texts has a band in common with it and is alike by their bits."""
    signatures = [SIGNATURE.unpack(signature_of(" ".join(prose(number)))) for number in range(KNOWN)]
    seen = {True: 0, False: 0}
    for number in range(KNOWN):
        text = changed(number, number % 20 / 200)
        first, second, *bands = SIGNATURE.unpack(signature_of(text))
        wanted = any(
            are_alike(first, second, *other[:2]) and any(one == two for one, two in zip(bands, other[2:], strict=True))
            for other in signatures
        )
        assert known.knows(text, signature_of(text)) == wanted
        seen[wanted] += 1
        other = " ".join(prose(KNOWN + number))
        assert not known.knows(other, signature_of(other))
    assert min(seen.values()) > KNOWN / 5


def _ask(known: KnownTexts, text: str) -> tuple[str, bool]:
    return known.identity, known.knows(text, signature_of(text))


def test_processes_share_a_file(known: KnownTexts) -> None:
    """Forked or spawned; another file under its name is told from it."""
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            asked = [(known, changed(7, 0.02)), (known, changed(KNOWN, 0))]
            assert pool.starmap(_ask, asked) == [(known.identity, True), (known.identity, False)]


def test_a_file_that_was_replaced_is_not_taken_for_it(tmp_path: Path) -> None:
    path = write(tmp_path / "one", ["one text"])
    rebuild, args = KnownTexts(path).__reduce__()
    write(tmp_path / "two", ["another text"]).replace(path)
    with pytest.raises(InputError, match="has changed since the crawl began"):
        rebuild(*args)


def test_without_signatures_texts_are_known_word_for_word(tmp_path: Path) -> None:
    texts = [" ".join(prose(number)) for number in range(50)]
    small, large = write(tmp_path / "exact", texts, near=False), write(tmp_path / "near", texts)
    exact = KnownTexts(small)
    assert all(exact.knows(text, signature_of(text)) for text in texts)
    assert not exact.knows(changed(0, 0.01), signature_of(changed(0, 0.01)))
    assert small.stat().st_size < large.stat().st_size - 50 * 140


def test_what_many_texts_share_is_found_and_costs_no_more(tmp_path: Path) -> None:
    """Of a thousand texts with the same signature but for a few bits, any near one is known: one is enough."""
    texts = [f"{' '.join(prose(1))} {number}" for number in range(1000)]
    known = KnownTexts(write(tmp_path / "alike", texts))
    assert len(known) == 1000
    assert known.knows(" ".join(prose(1)), signature_of(" ".join(prose(1))))


def test_the_order_of_what_is_written_makes_no_difference(tmp_path: Path) -> None:
    """Texts and URLs; each once."""
    texts = [" ".join(prose(number)) for number in range(300)]
    files = [write(tmp_path / name, given) for name, given in (("one", texts), ("two", [*texts[::-1], *texts[:9]]))]
    assert files[0].read_bytes() == files[1].read_bytes()
    numbers = np.array([random.Random(number).getrandbits(64) for number in range(5000)], dtype=URL)
    made = []
    for name, given in (("a", [numbers]), ("b", [numbers[:7], numbers[::-1]])):
        (tmp_path / name).mkdir()
        spread = Spread(tmp_path / name / "spread", URL)
        for some in given:
            spread.add(some)
        assert write_urls(spread, tmp_path / name, tmp_path / name / "urls.known") == 5000
        made.append((tmp_path / name / "urls.known").read_bytes())
    assert made[0] == made[1]

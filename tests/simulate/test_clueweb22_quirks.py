"""Each row of ``../shared/clueweb22-sample/quirks.tsv``, the answer key to the quirks of the real data, is a test."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.clueweb22.records import file_id_of

SAMPLE = Path(__file__).resolve().parents[3] / "shared" / "clueweb22-sample"
ROWS: list[dict[str, str]] = []
if SAMPLE.exists():
    with (SAMPLE / "quirks.tsv").open(encoding="utf-8", newline="") as table:
        ROWS = list(csv.DictReader(table, delimiter="\t"))

pytestmark = pytest.mark.skipif(not ROWS, reason=f"needs {SAMPLE}")


class Quirk:
    """One row, with the sample and parts of it."""

    def __init__(self, row: dict[str, str], folder: Path) -> None:
        first, _, last = row["document"].partition(" to ")
        self.expected = row["expected"]
        self.keys = [first] if not last else [f"{first[:-5]}{number:05d}" for number in range(int(last) + 1)]
        self.key = first
        self.corpus = ClueWeb22Corpus(SAMPLE)
        self._folder = folder

    def only(self, *kinds: str) -> ClueWeb22Corpus:
        """The sample as held by someone who has only some kinds."""
        root = self._folder / "-".join(kinds)
        root.mkdir()
        for kind in kinds:
            (root / kind).symlink_to(SAMPLE / kind)
        return ClueWeb22Corpus(root)


def txt_url_is_cut(quirk: Quirk) -> None:
    assert quirk.corpus.page(quirk.key).url == quirk.expected
    cut = quirk.only("txt").page(quirk.key).url
    assert quirk.expected.startswith(f"{cut},"), "the sample's txt URL is cut"


def txt_hash_differs(quirk: Quirk) -> None:
    assert quirk.corpus.page(quirk.key).url == quirk.expected
    assert quirk.only("txt").page(quirk.key).url == quirk.expected
    assert quirk.corpus.text(quirk.key)


def text_is_empty(quirk: Quirk) -> None:
    assert quirk.corpus.text(quirk.key) == ""
    page = quirk.only("txt").page(quirk.key)
    assert (page.text, page.url) == ("", quirk.expected)
    assert quirk.corpus.page(quirk.key).url == quirk.expected


def no_outlinks(quirk: Quirk) -> None:
    assert quirk.expected == "no outlinks"
    assert quirk.corpus.outlinks(quirk.key) == []
    assert quirk.corpus.page(quirk.key).outlinks == []
    assert quirk.key in quirk.corpus


def targets_of_all_sorts(quirk: Quirk) -> None:
    corpus = quirk.corpus
    links = corpus.outlinks(quirk.key)[:6]
    twice = "clueweb22-en0000-00-00041"
    assert f"null, {twice} twice" in quirk.expected
    assert [link.key and file_id_of(link.key)[:-3] for link in links] == [
        "de0000",
        "zh_chs0000",
        "en0079",
        None,
        "en0000",
        "en0000",
    ]
    assert [link.key in corpus for link in links] == [False, True, False, False, True, True]
    assert [link.key for link in links[4:]] == [twice, twice]
    assert links[3].url == "https://unsampled.example/"

    english = ClueWeb22Corpus(SAMPLE, target_prefix="clueweb22-en0").outlinks(quirk.key)
    assert [link.key for link in english[:6]] == [None, None, "clueweb22-en0079-99-00000", None, twice, twice]
    assert [link.url for link in english] == [link.url for link in corpus.outlinks(quirk.key)]


def inlink_url_is_another(quirk: Quirk) -> None:
    assert quirk.corpus.page(quirk.key).url == quirk.expected
    assert quirk.only("txt", "inlink").page(quirk.key).url == quirk.expected
    assert quirk.only("outlink", "inlink").page(quirk.key).url == quirk.expected
    assert quirk.only("inlink").page(quirk.key).url != quirk.expected, "the sample's inlink URL is another page's"


def first_offset_is_not_0(quirk: Quirk) -> None:
    offsets = SAMPLE / "html/en/en00/en0000" / f"{quirk.key[10:19]}.warc.offset"
    assert int(offsets.read_text().split()[0]) > 0
    page = quirk.corpus.page(quirk.key)
    assert page.html is not None
    assert page.html.startswith(b"<!DOCTYPE html>")
    assert page.html.rstrip().endswith(b"</html>")
    assert quirk.corpus.url(f"{quirk.key[:-1]}1") != page.url


def outlink_file_is_missing(quirk: Quirk) -> None:
    assert len(quirk.keys) == 100
    assert [quirk.corpus.outlinks(key) for key in quirk.keys] == [[]] * 100
    assert all(quirk.corpus.page(key).html for key in quirk.keys)


def inlink_file_is_missing(quirk: Quirk) -> None:
    assert len(quirk.keys) == 100
    assert [quirk.corpus.inlinks(key) for key in quirk.keys] == [[]] * 100


def language_has_an_underscore(quirk: Quirk) -> None:
    page = quirk.corpus.page(quirk.key)
    assert (page.url, page.language) == (quirk.expected, "zh_chs")
    assert "页面" in quirk.corpus.text(quirk.key)
    assert " " not in quirk.corpus.text(quirk.key)
    assert quirk.corpus.outlinks(quirk.key)[0].key == "clueweb22-zh_chs0000-00-00000"


CHECKS: dict[str, Callable[[Quirk], None]] = {
    "txt URL cut at its first comma": txt_url_is_cut,
    "txt URL-hash differs from html": txt_hash_differs,
    "empty Clean-Text": text_is_empty,
    "outlink record is an empty line": no_outlinks,
    "outlink record is an empty gzip member": no_outlinks,
    "outlinks: other languages, a document that is not held, null id, one target twice": targets_of_all_sorts,
    "inlink record's URL is another page's": inlink_url_is_another,
    "html file begins with a warcinfo record: the first offset is not 0": first_offset_is_not_0,
    "the whole outlink file is missing": outlink_file_is_missing,
    "the whole inlink file is missing": inlink_file_is_missing,
    "language name with an underscore; text without spaces": language_has_an_underscore,
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['document'][10:]}: {row['quirk'][:40]}")
def test_quirk(row: dict[str, str], tmp_path: Path) -> None:
    """A row without a check fails."""
    CHECKS[row["quirk"]](Quirk(row, tmp_path))


def test_the_whole_sample_is_read() -> None:
    corpus = ClueWeb22Corpus(SAMPLE)
    corpus.check()
    assert len(corpus) == 602
    assert all(corpus.page(key).html for key in corpus.sample(602, 0))

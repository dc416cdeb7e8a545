"""The ClueWeb22 reader on trees that the tests write: the contract, parts that are missing, and damage."""

from __future__ import annotations

import json
import random
import re
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from clueweb22_helpers import (
    html_record,
    key_of,
    link,
    link_record,
    member,
    paths,
    text_record,
    url_of,
    write_file,
    write_tree,
)
from corpus_contract import CorpusContract, digest, in_forked_processes

from crawl4llm.base.domains import owner_of
from crawl4llm.base.errors import CorruptRecord, InputError, MissingRecord
from crawl4llm.base.pages import Link
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.clueweb22.records import RecordFiles, data_path, language_of, number_of, offset_path, parse_text, split_id
from simulate.clueweb22.url_index import build_url_index

FILE = "en0000-00"
KEY = key_of(FILE, 0)


class TestContract(CorpusContract):
    """The reader keeps the contract of every corpus."""

    absent_key = "clueweb22-en0079-99-00000"
    malformed_key = "clueweb22-en0079-99-0"

    @pytest.fixture
    def corpus(self, tmp_path: Path) -> ClueWeb22Corpus:
        corpus = ClueWeb22Corpus(write_tree(tmp_path / "tree"), url_index=tmp_path / "index")
        build_url_index(corpus, tmp_path / "index")
        return corpus


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "tree")


def one_page(root: Path, kind: str, record: bytes) -> ClueWeb22Corpus:
    """A tree with one record; ``record`` is not compressed."""
    write_file(root, kind, FILE, [member(record)])
    return ClueWeb22Corpus(root)


# -- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "language", "number", "record"),
    [
        ("clueweb22-en0041-36-03476", "en", (41 * 100 + 36) * 20_000 + 3476, 3476),
        ("clueweb22-zh_chs1280-99-19999", "zh_chs", 13 * 81 * 100 * 20_000 - 1, 19999),
        ("clueweb22-other0000-00-00000", "other", 0, 0),
    ],
)
def test_ids_are_taken_apart(text: str, language: str, number: int, record: int) -> None:
    assert (language_of(text), number_of(text)) == (language, number)
    assert split_id(text) == (text[10:-6], record)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "clueweb22-",
        "clueweb22-en0041-36-3476",
        "clueweb22-en0041-36-034760",
        "clueweb22-en041-36-03476",
        "clueweb22-0041-36-03476",
        "clueweb22-zh_0041-36-03476",
        "clueweb22-../00-00-00000",
        "clueweb22-en0041-36-0347\N{ARABIC-INDIC DIGIT SIX}",
        "clueweb09-en0041-36-03476",
        "https://example.org/",
        f"x{KEY}",
        f"{KEY}\n",
        KEY.upper(),
    ],
)
def test_what_is_no_id(text: str) -> None:
    assert number_of(text) is None
    assert split_id(text) is None


def test_paths_are_those_of_the_format_page() -> None:
    root = Path("/cw")
    assert data_path(root, "txt", "en0041-36") == Path("/cw/txt/en/en00/en0041/en0041-36.json.gz")
    assert offset_path(root, "html", "zh_chs0012-07") == Path(
        "/cw/html/zh_chs/zh_chs00/zh_chs0012/zh_chs0012-07.warc.offset"
    )


# -- records ----------------------------------------------------------------------------------------------------------


def test_page_with_html(tree: Path) -> None:
    page = ClueWeb22Corpus(tree).page(KEY)
    assert page.html == f"<p>Page {KEY}</p>".encode()
    assert (page.url, page.date, page.language, page.text) == (url_of(KEY), "2022-08-15T10:20:30Z", "en", None)
    assert page.outlinks == [
        Link(url_of(key_of(FILE, 1)), key_of(FILE, 1), "anchor", boilerplate=False),
        Link("https://else.example/", None, "anchor", boilerplate=False),
        Link(url_of("clueweb22-en0079-99-00000"), "clueweb22-en0079-99-00000", "anchor", boilerplate=False),
    ]


def test_page_without_html(tree: Path) -> None:
    shutil.rmtree(tree / "html")
    page = ClueWeb22Corpus(tree).page(KEY)
    assert (page.html, page.text, page.date, page.url) == (None, f"Text of {KEY}.", None, url_of(KEY))


def test_page_whose_html_is_not_among_those_held(tree: Path) -> None:
    write_file(tree, "html", FILE, [member(html_record(KEY))])
    page = ClueWeb22Corpus(tree).page(key_of(FILE, 1))
    assert (page.html, page.text) == (None, f"Text of {key_of(FILE, 1)}.")


def test_html_is_given_as_it_is(tmp_path: Path) -> None:
    body = "HTTP/1.1 200 OK\r\nX: 1\r\n\r\n<p>Grüße</p>\r\n\r\n"
    corpus = one_page(tmp_path, "html", html_record(KEY, body))
    assert corpus.html(KEY) == body.encode(), "the block has no HTTP head to be taken off"


def test_html_record_with_bare_line_feeds_in_its_head(tmp_path: Path) -> None:
    head, _, block = html_record(KEY, "<p>\r\n\r\n</p>").partition(b"\r\n\r\n")
    corpus = one_page(tmp_path, "html", head.replace(b"\r\n", b"\n") + b"\n\n" + block)
    assert corpus.html(KEY) == b"<p>\r\n\r\n</p>"


@pytest.mark.parametrize(
    ("date", "read"),
    [
        ("2022-08-15T10:20:30.999Z", "2022-08-15T10:20:30Z"),
        ("2022-08-15T10:20:30.123456789Z", "2022-08-15T10:20:30Z"),
        ("2022-08-15T10:20:30+02:00", "2022-08-15T08:20:30Z"),
        ("2022-08-15T10:20:30", None),
        ("yesterday", None),
        ("0001-01-01T00:00:00+05:00", None),
    ],
)
def test_dates(tmp_path: Path, date: str, read: str | None) -> None:
    assert one_page(tmp_path, "html", html_record(KEY, WARC_Date=date)).page(KEY).date == read


def test_text_in_any_script_and_with_a_torn_character(tmp_path: Path) -> None:
    record = text_record(KEY, text="页面 \U0001f600").replace(b" \\ud83d", b"\\ud83d \\ud83d")
    text = one_page(tmp_path, "txt", record).text(KEY)
    assert text == "页面\N{REPLACEMENT CHARACTER} \U0001f600"


def test_header_or_footer_flag(tmp_path: Path) -> None:
    links = [link(None, flag=flag) for flag in ("", "0", "1", "2")]
    corpus = one_page(tmp_path, "outlink", link_record(KEY, links))
    assert [found.boilerplate for found in corpus.outlinks(KEY)] == [False, False, True, True]


def test_target_prefix(tmp_path: Path) -> None:
    targets = ["clueweb22-en0079-99-00000", "clueweb22-en1000-00-00000", "clueweb22-de0000-00-00000", None]
    one_page(tmp_path, "outlink", link_record(KEY, [link(target) for target in targets]))
    corpus = ClueWeb22Corpus(tmp_path, target_prefix="clueweb22-en0")
    assert [found.key for found in corpus.outlinks(KEY)] == [targets[0], None, None, None]
    assert corpus.outlinks(KEY)[1].url == url_of("clueweb22-en1000-00-00000")


def test_slimmed_copies_of_links(tmp_path: Path) -> None:
    slim = {
        "ClueWeb22-ID": KEY,
        "outlinks": [["clueweb22-en0079-99-00000"], [None], ["clueweb22-de0000-00-00000", "x"]],
    }
    one_page(tmp_path, "outlink", json.dumps(slim).encode())
    write_file(tmp_path, "txt", FILE, [member(text_record(KEY))])
    corpus = ClueWeb22Corpus(tmp_path)
    assert [found.key for found in corpus.outlinks(KEY)] == [
        "clueweb22-en0079-99-00000",
        None,
        "clueweb22-de0000-00-00000",
    ]
    assert corpus.page(KEY).url == url_of(KEY)


@pytest.mark.parametrize("empty", [member(b""), member(b"\n"), member(b" \r\n"), b""])
def test_empty_records(tmp_path: Path, empty: bytes) -> None:
    for kind in ("txt", "outlink", "inlink"):
        write_file(tmp_path, kind, FILE, [empty, member(text_record(key_of(FILE, 1)))])
    corpus = ClueWeb22Corpus(tmp_path)
    assert corpus.outlinks(KEY) == corpus.inlinks(KEY) == []
    with pytest.raises(MissingRecord):
        corpus.text(KEY)


# -- the URL ----------------------------------------------------------------------------------------------------------

CUT, WHOLE = "https://en.example/manga/43556", "https://en.example/manga/43556,verrueckt-nach-dir"


@pytest.mark.parametrize(
    ("urls", "url"),
    [
        ({"html": WHOLE, "txt": CUT, "outlink": "https://other.example/", "inlink": CUT}, WHOLE),
        ({"txt": CUT, "outlink": WHOLE}, WHOLE),
        ({"txt": CUT, "inlink": WHOLE}, WHOLE),
        ({"txt": CUT, "outlink": "https://other.example/", "inlink": WHOLE}, WHOLE),
        ({"txt": CUT, "outlink": "https://other.example/"}, CUT),
        ({"txt": CUT, "inlink": f"{CUT}7"}, CUT),
        ({"txt": CUT}, CUT),
        ({"html": "", "txt": CUT}, CUT),
        ({"html": "", "outlink": WHOLE}, WHOLE),
        ({"outlink": WHOLE, "inlink": "https://other.example/"}, WHOLE),
        ({"outlink": "", "inlink": WHOLE}, WHOLE),
    ],
)
def test_which_record_names_the_url(tmp_path: Path, urls: dict[str, str], url: str) -> None:
    records: dict[str, Callable[[str], bytes]] = {
        "html": lambda url: html_record(KEY, url=url),
        "txt": lambda url: text_record(KEY, url),
        "outlink": lambda url: link_record(KEY, [], url=url),
        "inlink": lambda url: link_record(KEY, [], "anchors", url=url),
    }
    for kind, said in urls.items():
        write_file(tmp_path, kind, FILE, [member(records[kind](said))])
    corpus = ClueWeb22Corpus(tmp_path)
    assert corpus.page(KEY).url == corpus.url(KEY) == url
    assert {corpus.outline(KEY, part).url for part in ("text", "html")} == {url}
    assert owner_of(corpus.site(KEY)) == owner_of(url)


@pytest.mark.parametrize("kind", ["txt", "html"])
@pytest.mark.parametrize(
    "path", ["a", "a" * 2000, 'a,"Clean-Text":,b'], ids=["at the start", "longer than the start", "like what ends it"]
)
def test_the_owner_is_told_by_the_start_of_a_record(tmp_path: Path, kind: str, path: str) -> None:
    url = f"https://site.example/{path}"
    record = text_record(KEY, url) if kind == "txt" else html_record(KEY, url=url)
    write_file(tmp_path, kind, FILE, [member(record)])
    corpus = ClueWeb22Corpus(tmp_path)
    assert owner_of(corpus.site(KEY)) == owner_of(corpus.url(KEY)) == "site.example"
    assert {corpus.outline(KEY, part).url for part in ("text", "html")} == {url}


@pytest.mark.parametrize(("kinds", "part"), [(("txt",), "text"), (("txt", "html"), "html")])
def test_an_outline_is_the_page_but_for_what_was_read(tmp_path: Path, kinds: tuple[str, ...], part: str) -> None:
    tree = write_tree(tmp_path / "tree")
    for kind in {"txt", "html"}.difference(kinds):
        shutil.rmtree(tree / kind)
    corpus = ClueWeb22Corpus(tree)
    other = {"text": "html", "html": "text"}[part]
    for key in corpus.keys():
        page = corpus.page(key)
        assert corpus.outline(key, other) == page
        assert page.outlinks
        outline = corpus.outline(key, part)
        assert (outline.html, outline.text, outline.url, outline.outlinks) == (None, None, page.url, page.outlinks)


def test_the_owner_of_a_document_that_is_not_held_is_not_told(tmp_path: Path) -> None:
    write_file(tmp_path, "txt", FILE, [member(text_record(KEY)), b"damaged"])
    corpus = ClueWeb22Corpus(tmp_path)
    for key, error in ((KEY[:-1] + "1", CorruptRecord), (KEY[:-1] + "2", MissingRecord), ("no id", MissingRecord)):
        with pytest.raises(error):
            corpus.site(key)


def test_a_damaged_inlink_record_does_not_cost_the_page(tmp_path: Path) -> None:
    write_file(tmp_path, "txt", FILE, [member(text_record(KEY))])
    write_file(tmp_path, "inlink", FILE, [b"damaged"])
    assert ClueWeb22Corpus(tmp_path).page(KEY).url == url_of(KEY)


# -- what is not held -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("clueweb22-en0000-00-99999", "clueweb22-en0000-00-99999"),
        (key_of(FILE, 3), key_of(FILE, 3)),
        ("clueweb22-en0000-01-00000", "clueweb22-en0000-01-00000"),
        ("clueweb22-fr0000-00-00000", "clueweb22-fr0000-00-00000"),
        ("https://en.example/", "'https://en.example/' is not a ClueWeb22-ID"),
        ("clueweb22-en0000-00-00000\n", "is not a ClueWeb22-ID"),
    ],
)
def test_documents_that_are_missing(tree: Path, key: str, words: str) -> None:
    corpus = ClueWeb22Corpus(tree)
    assert key not in corpus
    for look_up in (corpus.page, corpus.text, corpus.html, corpus.outlinks, corpus.inlinks, corpus.url):
        with pytest.raises(MissingRecord, match=re.escape(words)):
            look_up(key)


@pytest.mark.parametrize("kind", ["outlink", "inlink"])
def test_links_of_a_document_whose_link_file_is_missing(tree: Path, kind: str) -> None:
    for path in paths(tree, kind, FILE):
        path.unlink()
    corpus = ClueWeb22Corpus(tree)
    corpus.check()
    assert (corpus.outlinks if kind == "outlink" else corpus.inlinks)(KEY) == []
    assert corpus.page(KEY).outlinks == ([] if kind == "outlink" else corpus.outlinks(KEY))


def test_without_the_outlink_folder_outlinks_are_unknown(tree: Path) -> None:
    shutil.rmtree(tree / "outlink")
    corpus = ClueWeb22Corpus(tree)
    assert corpus.page(KEY).outlinks is None
    assert corpus.outlinks(KEY) == []
    with pytest.raises(InputError, match=r"CORPUS .*tree: the folder outlink/ is missing"):
        corpus.require("text", "outlinks")


def test_documents_are_those_with_content(tmp_path: Path) -> None:
    write_file(tmp_path, "txt", FILE, [member(text_record(key_of(FILE, number))) for number in range(3)])
    write_file(tmp_path, "html", FILE, [member(html_record(KEY))])
    write_file(tmp_path, "html", "en0000-01", [member(html_record(key_of("en0000-01", 0)))])
    write_file(tmp_path, "outlink", "en0000-02", [member(link_record(key_of("en0000-02", 0), []))])
    expected = [KEY, key_of(FILE, 1), key_of(FILE, 2), key_of("en0000-01", 0)]
    corpus = ClueWeb22Corpus(tmp_path)
    assert list(corpus.keys()) == expected
    assert len(corpus) == 4
    assert [key for key in expected if key in corpus] == expected
    assert key_of("en0000-02", 0) not in corpus


def test_tree_of_links_alone(tree: Path) -> None:
    shutil.rmtree(tree / "txt")
    shutil.rmtree(tree / "html")
    corpus = ClueWeb22Corpus(tree)
    corpus.check()
    assert len(corpus) == 6
    page = corpus.page(KEY)
    assert (page.html, page.text, page.url) == (None, None, url_of(KEY))
    assert page.outlinks
    with pytest.raises(InputError, match="the folder txt/ is missing"):
        corpus.require("text")


# -- the whole corpus -------------------------------------------------------------------------------------------------


def test_identity_follows_files_and_options_but_not_the_place(tree: Path, tmp_path: Path) -> None:
    identity = ClueWeb22Corpus(tree).identity()
    shutil.copytree(tree, tmp_path / "copy")
    assert ClueWeb22Corpus(tmp_path / "copy").identity() == identity
    assert ClueWeb22Corpus(tree, target_prefix="clueweb22-en0").identity() != identity
    write_file(tree, "txt", FILE, [member(text_record(KEY, text="A longer text than before."))])
    assert ClueWeb22Corpus(tree).identity() != identity


def test_sample_is_uniform_over_files_of_unequal_length(tmp_path: Path) -> None:
    for file_id, records in (("de0000-00", 1), (FILE, 9)):
        write_file(tmp_path, "txt", file_id, [member(text_record(key_of(file_id, n))) for n in range(records)])
    corpus = ClueWeb22Corpus(tmp_path)
    drawn = [corpus.sample(1, seed)[0] for seed in range(2000)]
    counts = {key: drawn.count(key) for key in list(corpus.keys())}
    assert len(counts) == 10
    assert all(140 < count < 260 for count in counts.values()), counts


def open_files_in(folder: Path) -> int:
    count = 0
    for handle in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing itself
            count += str(handle.readlink()).startswith(f"{folder}/")
    return count


def test_many_files_are_read_on_few_handles(tmp_path: Path) -> None:
    file_ids = [f"en0000-{number:02d}" for number in range(40)]
    for file_id in file_ids:
        write_file(tmp_path, "txt", file_id, [member(text_record(key_of(file_id, 0), text=file_id))])
    files = RecordFiles(tmp_path, max_open=5)
    for file_id in random.Random(0).choices(file_ids, k=400):
        record = files.read("txt", key_of(file_id, 0), parse_text)
        assert record is not None
        assert record.text == file_id
        assert open_files_in(tmp_path) <= 10
    files.close()
    assert open_files_in(tmp_path) == 0
    assert files.read("txt", key_of(file_ids[0], 0), parse_text)
    del files
    assert open_files_in(tmp_path) == 0


def test_forked_readers_of_the_real_web_agree(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3] / "shared" / "clueweb22-real"
    if not root.exists():
        pytest.skip(f"needs {root}")
    corpus = ClueWeb22Corpus(root)
    keys = corpus.sample(1500, 3)
    texts = [corpus.text(key) for key in keys]

    def read(number: int) -> str:
        order = random.Random(number).sample(range(len(keys)), len(keys))
        return str(all(corpus.text(keys[place]) == texts[place] for place in order))

    assert in_forked_processes(4, read) == ["True"] * 4


def test_results_do_not_depend_on_isal(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(ClueWeb22Corpus(tree))
    monkeypatch.setattr("crawl4llm.base.compression.isal_or_zlib", zlib)
    assert digest(ClueWeb22Corpus(tree)) == before

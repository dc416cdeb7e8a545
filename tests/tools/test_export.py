"""``scrapy export``: what is written, and what of it is chosen."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest
from crawl_helpers import Web, crawl, crawl_args, crawl_log, error_of, scrapy
from export_helpers import Page, documents, entries, files, html_of, ids, manifest, pages, run_export, write_run
from warc_helpers import http, page, record, response, url_of, write

from crawl4llm.base.domain_lists import DomainList
from crawl4llm.base.errors import InputError
from crawl4llm.parts.blocklists.work import publish


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten pages, the later the better; each has other words in its HTML than in its archived text."""
    crawled = [one._replace(html=html_of("other words"), language="en") for one in pages(10)]
    crawled[3] = crawled[3]._replace(language="de-AT")
    return write_run(tmp_path_factory.mktemp("export") / "run", crawled)


def test_a_document_has_its_text_and_tells_where_it_is_from(run: Path, tmp_path: Path) -> None:
    run_export(tmp_path / "out", run)
    written = documents(tmp_path / "out")
    assert [document["id"] for document in written] == [one.id for one in pages(10)]
    for document, one, entry in zip(written, pages(10), entries(run / "warc" / "index.cdxj"), strict=True):
        assert document["text"] == one.text
        assert document["influence"] == one.influence
        assert document["url"] == document["metadata"]["WARC-Target-URI"] == f"http://site.example.org/{one.id}"
        assert document["date"] == document["created"] == "2022-08-01T12:00:00Z"
        assert document["language"] == ("de-AT" if one.id == "key-003" else "en")
        assert document["digest"] == entry["digest"]
        start = document["warc_offset"]
        member = (run / "warc" / document["warc_file"]).read_bytes()[start : start + document["warc_length"]]
        assert document["url"].encode() in gzip.decompress(member)


def test_the_manifest_counts_and_names_all(run: Path, tmp_path: Path) -> None:
    lines = run_export(tmp_path / "out", run, shard_documents=4, format="jsonl.gz", min_words=1)
    told = manifest(tmp_path / "out")
    assert [shard["documents"] for shard in told["shards"]] == [4, 4, 2]
    assert {shard["name"]: shard["sha256"] for shard in told["shards"]} == {
        name: hashlib.sha256(data).hexdigest() for name, data in files(tmp_path / "out").items()
    }
    assert [shard["bytes"] for shard in told["shards"]] == [len(data) for data in files(tmp_path / "out").values()]
    assert (told["documents"], told["tokens"], told["left_out"]) == (10, {"words": 200}, {})
    assert told["settings"]["shard_documents"] == 4
    assert told["sources"][0]["digests"].keys() == {"index.cdxj", "text.cdxj", "crawl.jsonl"}
    assert lines[0].startswith("Wrote 10 documents, 200 words, to 3 files")
    assert not (tmp_path / "out" / "work").exists()


def test_known_texts_are_left_out(run: Path, tmp_path: Path) -> None:
    """Word for word, or nearly; a file that is made of the export knows all of it."""
    texts = [one.text for one in pages(10)]
    known = [" ".join(texts[2].split()).replace(" ", "\n"), texts[7], "something else"]
    (tmp_path / "have.jsonl").write_text("".join(f"{json.dumps({'text': text})}\n" for text in known))
    for made, option in (("near", []), ("exact", ["--exact"])):
        result = scrapy("corpus", "known", str(tmp_path / made), str(tmp_path / "have.jsonl"), *option)
        assert result.returncode == 0, result.stderr
        lines = run_export(tmp_path / f"out-{made}", run, known=str(tmp_path / made / "texts.known"), top=8)
        assert ids(tmp_path / f"out-{made}") == [one.id for number, one in enumerate(pages(10)) if number not in {2, 7}]
        assert manifest(tmp_path / f"out-{made}")["left_out"] == {"known_text": 2}
        assert "left out: 2 known_text" in lines
    told = error_of(scrapy("export", str(run), "--out", str(tmp_path / "no"), "--known", str(tmp_path / "have.jsonl")))
    assert told.startswith("--known ")
    assert "known_texts" not in manifest(tmp_path / "out-near")["settings"]


@pytest.mark.parametrize(
    ("wanted", "numbers", "left_out"),
    [
        ({"min_influence": 0.7}, [7, 8, 9], {"below_min_influence": 7}),
        ({"top": 2}, [8, 9], {"not_top": 8}),
        ({"top_share": 0.25}, [7, 8, 9], {"not_top": 7}),
        ({"top": 3, "order": "influence"}, [9, 8, 7], {"not_top": 7}),
        ({"languages": ("DE",)}, [3], {"language": 9}),
        ({"languages": ("de", "en"), "min_influence": 0.8}, [8, 9], {"below_min_influence": 8}),
        ({"languages": ("de",), "min_influence": 0.2}, [3], {"below_min_influence": 2, "language": 7}),
        ({"min_words": 21}, [], {"too_short": 10}),
        ({"max_words": 19}, [], {"too_long": 10}),
    ],
)
def test_selection(run: Path, tmp_path: Path, wanted: dict, numbers: list[int], left_out: dict[str, int]) -> None:
    run_export(tmp_path / "out", run, **wanted)
    assert ids(tmp_path / "out") == [f"key-{number:03d}" for number in numbers]
    assert manifest(tmp_path / "out")["left_out"] == left_out


def test_a_share_is_rounded_up_as_it_was_given(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", pages(100))
    run_export(tmp_path / "out", run, top_share=0.07)  # in floats 0.07 * 100 is more than 7
    assert len(ids(tmp_path / "out")) == 7


@pytest.mark.parametrize(
    ("option", "fault"),
    [("--min-influence=high", "'high' is not a number"), ("--top-share=half", "'half' is not a number")],
)
def test_options_that_are_no_numbers(option: str, fault: str) -> None:
    wrong = scrapy("export", "run", "--out", "out", option)
    assert wrong.returncode == 2
    assert fault in wrong.stderr


def test_of_texts_that_are_alike_the_best_stays(tmp_path: Path) -> None:
    words = [f"word{number}" for number in range(300)]
    same, nearly, half = " ".join(words), " ".join(words[:290]), " ".join(words[:150])
    crawled = [Page("a", same, 0.1), Page("b", half, 0.2), Page("c", nearly, 0.9), Page("d", same, 0.8)]
    crawled.append(Page("e", same, 0.8))
    run = write_run(tmp_path / "run", crawled)
    run_export(tmp_path / "exact", run, keep_near_duplicates=True)
    assert ids(tmp_path / "exact") == ["b", "c", "d"]
    assert manifest(tmp_path / "exact")["left_out"] == {"duplicate_text": 2}
    run_export(tmp_path / "all", run, keep_duplicates=True)
    assert ids(tmp_path / "all") == ["a", "b", "c", "d", "e"]
    run_export(tmp_path / "near", run)
    assert ids(tmp_path / "near") == ["b", "c"]
    assert manifest(tmp_path / "near")["left_out"] == {"duplicate_text": 2, "near_duplicate": 1}


def test_most_texts_that_are_nearly_the_same_are_found(tmp_path: Path) -> None:
    crawled, again = [], []
    for number, one in enumerate(pages(60, words=100)):
        assert one.text is not None
        changed = one.text.replace(f"word{number}x50", "other")  # 91 of the 101 runs of five words are in both
        crawled.append(one)
        again.append(Page(f"again {number}", changed, (one.influence or 0) + 0.5))
    runs = [write_run(tmp_path / "run", crawled), write_run(tmp_path / "later", again)]
    run_export(tmp_path / "out", *runs)
    assert manifest(tmp_path / "out")["left_out"]["near_duplicate"] >= 55
    assert {one.id for one in again} <= {*ids(tmp_path / "out")}, "the better one stays"
    result = scrapy("export", *map(str, runs), "--out", str(tmp_path / "all"), "--keep-near-duplicates")
    assert result.returncode == 0, result.stderr
    assert manifest(tmp_path / "all")["left_out"] == {}
    assert len(ids(tmp_path / "all")) == 120


def test_files_hold_so_many_bytes_of_text(tmp_path: Path) -> None:
    crawled = [Page(str(number), f"{number}" * size, 0.5) for number, size in enumerate([400, 500, 200, 1500, 10])]
    run = write_run(tmp_path / "run", crawled)
    run_export(tmp_path / "out", run, shard_bytes=1000, format="jsonl")
    assert [shard["text_bytes"] for shard in manifest(tmp_path / "out")["shards"]] == [900, 200, 1500, 10]


def test_pages_without_archived_text_are_extracted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [*pages(3), Page("empty", "", 0.9)], texts=False)
    run_export(tmp_path / "out", run)
    assert [document["text"].split() for document in documents(tmp_path / "out")] == [
        (one.text or "").split() for one in pages(3)
    ]
    assert manifest(tmp_path / "out")["left_out"] == {"no_text": 1}


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_corpus_of_texts(tmp_path: Path, compression: str) -> None:
    crawled = [*pages(3), Page("empty", "", 0.9), Page("blank", " \n", 0.9)]
    run = write_run(tmp_path / "run", crawled, texts=False, text_only=True, compression=compression)
    run_export(tmp_path / "out", run)
    assert [document["text"] for document in documents(tmp_path / "out")] == [one.text for one in pages(3)]
    assert manifest(tmp_path / "out")["left_out"] == {"no_text": 2}


def test_a_warc_folder_has_influence_from_its_metadata(run: Path, tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    for path in (run / "warc").iterdir():
        (tmp_path / "alone" / path.name).write_bytes(path.read_bytes())
    for source in (run / "warc", tmp_path / "alone"):
        run_export(tmp_path / f"of {source.name}", source, min_influence=0.7)
        assert ids(tmp_path / f"of {source.name}") == ["key-007", "key-008", "key-009"]
        assert {document["language"] for document in documents(tmp_path / f"of {source.name}")} == {"en"}
    run_export(tmp_path / "keeping", tmp_path / "alone", keep_duplicates=True)
    assert [document["influence"] for document in documents(tmp_path / "keeping")] == [
        one.influence for one in pages(10)
    ]


def test_the_archive_of_a_crawl_is_known_by_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log and the domains that were blocked stand beside it."""
    run = write_run(tmp_path / "run", [Page("kept", "a text"), Page("gone", "other words", host="blocked.example")])
    (run / "blocked.json").write_text('{"blocked": ["blocked.example"]}')
    (tmp_path / "link").symlink_to(run / "warc")
    monkeypatch.chdir(run / "warc")
    for number, source in enumerate((run / "warc", tmp_path / "link", ".")):
        run_export(tmp_path / f"out {number}", source)
        assert ids(tmp_path / f"out {number}") == ["kept"]
        assert manifest(tmp_path / f"out {number}")["left_out"] == {"opt_out/blocked": 1}


def test_a_copy_in_the_layout_of_clueweb12(run: Path, tmp_path: Path) -> None:
    copied = scrapy("archive", "finish", str(run), "--trec-ids", "T", "--out", str(tmp_path / "T"))
    assert copied.returncode == 0, copied.stderr
    for source in (run, tmp_path / "T"):
        run_export(tmp_path / f"of {source.name}", source)
    assert ids(tmp_path / "of T") == ids(tmp_path / "of run")
    assert list(manifest(tmp_path / "of T")["sources"][0]["files"]) == [
        "T_00/0000wb/0000wb-00.warc.gz",
        "text/pages-text-00000.warc.gz",
    ]


@pytest.mark.parametrize("options", [["--trec-ids", "T"], ["--sample", "1"]])
def test_a_copy_knows_the_domains_that_were_blocked(tmp_path: Path, options: list[str]) -> None:
    """By hand, and by lists."""
    hosts = ["kept.example", "blocked.example", "listed.example"]
    run = write_run(tmp_path / "run", [Page(host, f"words of {host}", host=host) for host in hosts])
    (run / "blocked.json").write_text('{"blocked": ["blocked.example"]}')
    (tmp_path / "list.txt").write_text("listed.example\n")
    publish([DomainList(tmp_path / "list.txt", "BLOCKLISTS")], run)
    copied = scrapy("archive", "finish", str(run), *options, "--out", str(tmp_path / "copy"))
    assert copied.returncode == 0, copied.stderr
    run_export(tmp_path / "out", tmp_path / "copy")
    assert ids(tmp_path / "out") == ["kept.example"]
    assert manifest(tmp_path / "out")["left_out"] == {"blocklist": 1, "opt_out/blocked": 1}


def test_what_a_repair_cut_off_is_not_counted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", pages(3))
    for path in list((run / "warc").glob("*.warc.gz")):
        path.with_name(f"{path.name}.cut").write_bytes(path.read_bytes() + b"no record")
    run_export(tmp_path / "out", run)
    assert (len(ids(tmp_path / "out")), manifest(tmp_path / "out")["left_out"]) == (3, {})


def test_a_domain_that_is_blocked_in_one_crawl_is_left_out_of_all_sources(tmp_path: Path) -> None:
    older = write_run(tmp_path / "older", [Page("kept", "a text"), Page("gone", "other words", host="blocked.example")])
    newer = write_run(tmp_path / "newer", [Page("new", "more words")])
    (newer / "blocked.json").write_text('{"blocked": ["blocked.example"]}')
    others = write(
        tmp_path / "others.warc.gz", response("http://a.blocked.example/x", http(html_of("Words of others.")))
    )
    run_export(tmp_path / "out", older, newer, others)
    assert ids(tmp_path / "out") == ["kept", "new"]
    assert manifest(tmp_path / "out")["left_out"] == {"opt_out/blocked": 2}


def test_a_simulation_of_a_crawl_opts_out_what_was_blocked_in_it(tmp_path: Path) -> None:
    """Blocked before the archive has an index, and since."""
    hosts = ["kept.example", "first.example", "later.example"]
    run = write_run(tmp_path / "run", [Page(host, f"words of {host}", html=html_of(host), host=host) for host in hosts])
    for blocked in (["first.example"], ["first.example", "later.example"]):
        (run / "blocked.json").write_text(json.dumps({"blocked": blocked}))
        replay = tmp_path / f"replay {len(blocked)}"
        settings = {"SIMULATION_TEXT": "extracted", "SCORER": "length", "CRAWL_SEEDS": 3}
        done = scrapy(*crawl_args(None, replay, CORPUS=run, **settings))
        assert done.returncode == 0, done.stderr
        run_export(tmp_path / f"out {len(blocked)}", replay)
        assert manifest(tmp_path / f"out {len(blocked)}")["left_out"] == {"opt_out/blocked": len(blocked)}


def test_sources_are_joined_and_a_document_comes_once(run: Path, tmp_path: Path) -> None:
    second = write_run(tmp_path / "second", [Page("key-004", "another text", 0.9), Page("new", "a new text", 0.9)])
    run_export(tmp_path / "out", run, second)
    assert ids(tmp_path / "out") == [*(one.id for one in pages(10)), "new"]
    assert manifest(tmp_path / "out")["left_out"] == {"duplicate_id": 1}


def test_scores_of_two_models_are_not_compared(run: Path, tmp_path: Path) -> None:
    second = write_run(tmp_path / "second", [Page("new", "a new text", 0.9)], texts=False)
    (second / "settings.json").write_text(json.dumps({"model_digest": "sha256:" + "b" * 64}))
    with pytest.raises(InputError, match="of different models and cannot be compared"):
        run_export(tmp_path / "out", run, second, top=2)


def test_warc_files_of_any_origin(tmp_path: Path) -> None:
    english = record("conversion", url_of(2), b"A text.", ["Content-Type: text/plain", "Language: en"])
    not_html = response("https://site.example/a.pdf", http(b"%PDF", fields=("Content-Type: application/pdf",)))
    missing = response("https://site.example/gone", http(b"gone", "404 Not Found"))
    whole = write(tmp_path / "some" / "a.warc.gz", page(0), page(1), english, not_html, missing, page(1))
    data = write(tmp_path / "some" / "b.warc.gz", page(3), page(4)).read_bytes()
    (tmp_path / "some" / "b.warc.gz").write_bytes(data[:-20])
    for source in (tmp_path / "some", f"{tmp_path}/some/*.warc.gz", whole):
        out = tmp_path / f"out {str(source)[-1]}{Path(source).name[:1]}"
        run_export(out, source, settings={"SCORER": "length"})
        numbers = [0, 1, 2] if source == whole else [0, 1, 2, 3]
        assert [document["url"] for document in documents(out)] == [url_of(number) for number in numbers]
        assert documents(out)[1]["text"] == "Text of page 1."
        assert documents(out)[2]["language"] == "en"
        assert all(document["influence"] > 0 for document in documents(out))
        damaged = {} if source == whole else {"damaged": 1}
        assert manifest(out)["left_out"] == {"not_html": 1, "http_404": 1, "duplicate_id": 1, **damaged}
    run_export(tmp_path / "unscored", whole)
    assert [document["influence"] for document in documents(tmp_path / "unscored")] == [None] * 3
    with pytest.raises(InputError, match="no page has an influence score"):
        run_export(tmp_path / "selected", whole, top=1)


@pytest.mark.parametrize("wanted", [{}, {"keep_duplicates": True}], ids=["selected", "all"])
def test_wet_files_and_the_pages_that_they_are_of(tmp_path: Path, wanted: dict) -> None:
    languages = [[], ["WARC-Identified-Content-Language: eng"]]
    texts = [
        record("conversion", url_of(number), b"Text %d." % number, ["Content-Type: text/plain", *languages[number]])
        for number in (0, 1)
    ]
    write(tmp_path / "pair" / "a.warc.gz", page(0), page(1))
    for folder in ("pair", "alone"):
        write(tmp_path / folder / "a.warc.wet.gz", *texts)
        out = tmp_path / f"out {folder}"
        run_export(out, tmp_path / folder, **wanted)
        assert [document["text"] for document in documents(out)] == ["Text 0.", "Text 1."]
        assert [document["language"] for document in documents(out)] == [None, "eng"]
        assert all(document["date"] and document["url"] == url_of(n) for n, document in enumerate(documents(out)))


def test_a_crawl_and_its_oracle_set(demo_web: Web, tmp_path: Path) -> None:
    """The commands as a user gives them, on a crawl of the demo web that keeps texts."""
    pytest.importorskip("scipy", reason="the oracle set needs the extra evaluate")
    result = crawl(demo_web, tmp_path / "run", CRAWL_MAX_PAGES=300, WARC_TEXT=1)
    assert result.returncode == 0, result.stderr
    out = tmp_path / "out"
    result = scrapy("export", str(tmp_path / "run"), "--out", str(out), "--oracle", "--keep-duplicates")
    assert result.returncode == 0, result.stderr
    threshold = manifest(out)["oracle_threshold"]
    crawled = crawl_log(tmp_path / "run")
    assert ids(out) == [line["id"] for line in crawled if line["influence"] >= threshold]
    assert 0 < len(ids(out)) < len(crawled)
    assert {document["language"] for document in documents(out)} >= {"en"}
    wrong = scrapy("export", str(tmp_path / "run"), "--out", str(tmp_path / "wrong"), "--top-share", "7")
    assert wrong.returncode == 2
    assert "--top-share: '7' is not above 0" in wrong.stderr
    nothing = scrapy("export", str(tmp_path / "none"), "--out", str(tmp_path / "no"))
    assert error_of(nothing) == f"{tmp_path / 'none'}: no such file or folder"

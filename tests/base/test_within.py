"""Names that come out of data stay in their folder: what one received overwrites, removes and reads nothing else."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from archive_helpers import INFO, index, page, write_archive
from build_helpers import build
from clueweb22_helpers import write_tree
from dataset_helpers import done, problems, refused, tree, write_finished
from export_helpers import pages, run_export, write_run as write_crawl
from scrapy.settings import Settings
from warc_helpers import page as warc_page, write

from crawl4llm.base.crawl_log import read_log
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import AppendFile, ArchiveError
from crawl4llm.base.run_folder import read_json, write_text
from crawl4llm.base.within import is_within, require_all_within, within
from crawl4llm.frontier.bloom import FingerprintFilter
from crawl4llm.frontier.fingerprints import Mark, fingerprint
from crawl4llm.tools.archive.facts import read_lines
from crawl4llm.tools.evaluate.runs import read_runs
from crawl4llm.tools.explain import explain
from crawl4llm.tools.export.archive_source import read_values
from crawl4llm.tools.frontier import _check_archive, _check_lines
from crawl4llm.warc import ArchivePosition, ArchiveWriter, cdxj
from crawl4llm.warc.archive import SeriesPosition
from crawl4llm.warc.reader import read_record
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.clueweb22.url_index import UrlIndex, build_url_index
from simulate.indexes import MANIFEST
from simulate.warcs.corpus import WarcCorpus

ACTIONS = (("finish",), ("repair",), ("purge", "two.example"))
SECRET = b"what is mine\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_finished(tmp_path_factory.mktemp("within") / "run")


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "received/run"))


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[Path]:
    """A folder that nothing received may change."""
    folder = tmp_path / "mine"
    (folder / "warc").mkdir(parents=True)
    for name in ("victim", "crawl.jsonl", "warc/c-00009.warc.gz"):
        (folder / name).write_bytes(SECRET)
    before = tree(folder)
    yield folder
    assert tree(folder) == before


@pytest.mark.parametrize("name", ["a", "a/b", "...", "-", "a b", "\udcff", "ä"])
def test_names_within(tmp_path: Path, name: str) -> None:
    assert is_within(name)
    assert within(tmp_path, name, tmp_path) == tmp_path / name


NAMES = ["", ".", "..", "/", "/etc/passwd", "../x", "a/../../x", "a/..", "a//b", "a/", "\0", "\ud800", None, 5, ["a"]]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_names_that_lead_out(tmp_path: Path, name: object) -> None:
    assert not is_within(name)
    with pytest.raises(InputError, match=r"^index names .* which is not in ") as error:
        within(tmp_path, name, Path("index"))
    assert str(error.value).isprintable()


def test_links(tmp_path: Path, mine: Path) -> None:
    folder = tmp_path / "received"
    folder.mkdir()
    links = {"out": mine, "nowhere": mine / "new", "loop": folder / "loop", "up": "..", "in": "real"}
    for name, to in links.items():
        (folder / name).symlink_to(to)
    (folder / "real").touch()
    for name in ("out", "out/victim", "nowhere", "up", "up/x"):
        with pytest.raises(InputError, match="is not in"):
            within(folder, name, folder)
    assert within(folder, "in", folder).samefile(folder / "real")
    with pytest.raises(InputError, match="leads out of"):
        require_all_within(folder)
    (tmp_path / "link").symlink_to(folder)  # what the user gives may be one
    assert within(tmp_path / "link", "real", folder).exists()


# -- datasets ---------------------------------------------------------------------------------------------------------

JOURNALS: list[object] = [
    {"new": [["evil.txt", "../../mine/victim"]], "gone": ["{mine}/victim"]},
    {"new": [], "gone": ["{mine}/victim"]},
    {"new": [], "gone": ["../../mine/victim"]},
    {"new": [], "gone": ["link/victim"]},
    {"new": [["link/.victim.new", "link/victim"]], "gone": []},
    {"new": [["evil.txt", "crawl.jsonl"]], "gone": []},
    {"new": [["warc/.victim.new", "victim"]], "gone": []},
    {"new": [["crawl.jsonl"]], "gone": []},
    {"new": [], "gone": [None]},
    {"new": 5, "gone": []},
    {},
    [],
    "{",
    "[" * 100_000,
]


@pytest.mark.parametrize("journal", JOURNALS, ids=lambda journal: str(journal)[:60])
def test_a_journal_is_obeyed_only_within_its_dataset(run: Path, mine: Path, journal: object) -> None:
    (run / "evil.txt").write_text("evil")
    (run / "link").symlink_to(mine)
    path = run / ".archive-changes.json"
    path.write_text(journal if isinstance(journal, str) else json.dumps(journal).replace("{mine}", str(mine)))
    before = tree(run)
    for action in ACTIONS:
        assert str(path) in refused(*action, run)
    assert "was interrupted" in refused("check", run)
    assert tree(run) == before


def test_a_name_that_is_no_utf_8_is_named(run: Path) -> None:
    shutil.copy(run / "warc/c-00000.warc.gz", run / "warc/x\udcff.warc.gz")
    for action in (("check",), *ACTIONS):
        assert "not UTF-8" in refused(*action, run)


def put_link(path: Path, to: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(to)


LINKS = {
    "warc": "warc",
    "warc/part": "warc",
    "warc/c-00000.warc.gz": "warc/c-00009.warc.gz",
    "warc/c-00009.warc.gz.open": "warc/c-00009.warc.gz",
    "warc/index.cdxj": "victim",
    "warc/text.cdxj": "victim",
    "warc/sorted.cdxj": "victim",
    "crawl.jsonl": "crawl.jsonl",
    "purged.jsonl": "victim",
    "lost.jsonl": "new",
    "settings.json": "victim",
}


@pytest.mark.parametrize("link", LINKS)
def test_no_link_leads_out_of_a_dataset(run: Path, mine: Path, link: str) -> None:
    put_link(run / link, mine / LINKS[link])
    before = tree(run)
    for action in (("check",), *ACTIONS):
        assert f"{run / link} leads out of {run}, by a link" in refused(*action, run)
    assert tree(run) == before


@pytest.mark.parametrize("name", ["crawl.jsonl", "warc/index.cdxj", "warc/archive.md5", ".archive-changes.json"])
def test_a_fifo_in_a_dataset_is_named(run: Path, name: str) -> None:
    """Whoever opens one waits for who writes to it."""
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    for action in (("check",), ("purge", "two.example")):
        said = refused(*action, run)
        assert f"{run / name} is no file" in said or "it is a FIFO" in said or "was interrupted" in said


def test_no_list_leads_out_of_a_dataset(run: Path, mine: Path) -> None:
    lists = run / "warc/archive.md5"
    lists.write_text(f"{lists.read_text()}{'0' * 32} ../../../mine/victim\n{'0' * 32} {mine / 'victim'}\n")
    found = problems(run)
    for name in ("../../../mine/victim", str(mine / "victim")):
        assert any(f"names {name}, which is not there" in line for line in found)
    put_link(lists, mine / "victim")
    for action in (("check",), ("purge", "two.example")):
        assert f"{lists} leads out of {run}, by a link" in refused(*action, run)


WRITTEN = ["warc/.archive.md5.new", "warc/.sorted.cdxj.new", "warc/.index.cdxj.new", ".archive-changes.json.open"]


def test_what_is_written_does_not_follow_a_link(finished: Path, run: Path, mine: Path) -> None:
    for link in WRITTEN:
        (run / link).symlink_to(mine / "victim")
    done("finish", run)
    for link in WRITTEN:
        put_link(run / link, mine / "victim")
    done("purge", "two.example", run)
    assert done("check", run).startswith("sound")
    write_text(run / "x", "y")
    (run / "visited.new").symlink_to(mine / "victim")
    seen = FingerprintFilter(run / "visited", most_bytes=1 << 20, fsync=False)
    seen.add(fingerprint("one"))
    seen.save(Mark(1, 0))


def test_a_listing_may_lie_anywhere_and_is_removed_from_the_dataset_only(run: Path, mine: Path) -> None:
    line = json.dumps({"id": "doc-000", "url": "http://x.two.example/"}) + "\n"
    for listing in (run.parent / "purge.jsonl", run / "purge-two.example.jsonl"):
        listing.write_text(line)
        done("purge", "two.example", run, "--listing", run / "warc/../../run/.." / listing.relative_to(run.parent))
    assert (run.parent / "purge.jsonl").exists()
    assert not (run / "purge-two.example.jsonl").exists()
    (run / "purge-two.example.jsonl").symlink_to(mine / "victim")
    assert "by a link" in refused("purge", "two.example", run)


# -- archives that are read, and gone on with -------------------------------------------------------------------------


def test_an_index_leads_to_its_own_files(tmp_path: Path, mine: Path) -> None:
    warc = tmp_path / "received/warc"
    write_archive(warc, [page(1), page(2)])
    (entry, _) = index(warc)
    shutil.move(warc / entry.filename, tmp_path / "other.warc.gz")
    (warc / entry.filename).symlink_to(tmp_path / "other.warc.gz")
    with pytest.raises(InputError, match="leads out of"):
        read_record(warc, entry)
    with pytest.raises(InputError, match=r"index.cdxj names"):
        _check_archive(warc, "index.cdxj", SeriesPosition(0, 0, (warc / "index.cdxj").stat().st_size), 2)
    with pytest.raises(InputError, match="leads out of"):
        read_record(warc, replace(entry, filename="../../mine/victim"))


def test_no_link_leads_out_of_a_run_that_is_read(tmp_path: Path, mine: Path) -> None:
    run = tmp_path / "received"
    run.mkdir()
    for name in ("settings.json", "crawl.jsonl"):
        (run / name).symlink_to(mine / "victim")
    settings = Settings({"SCORING_WORKERS": 0})
    for read in (
        lambda: read_log(run / "crawl.jsonl"),
        lambda: explain(settings, "key", str(run)),
        lambda: iter(read_runs([run])),
    ):
        with pytest.raises(InputError, match=r"leads out of .* by a link"):
            next(read())
    assert read_json(run / "settings.json") == {}


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    """A device, in place of the FIFO at which a reader would wait."""
    (tmp_path / "index.cdxj").symlink_to("/dev/null")
    for read in (cdxj.read, read_lines, partial(read_values, parse=list, fault=str)):
        with pytest.raises(InputError, match=r"index\.cdxj.* a device, not a regular file"):
            next(read(tmp_path / "index.cdxj"))
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        _check_lines(tmp_path, 0)
    os.mkfifo(tmp_path / "crawl.jsonl")
    with pytest.raises(ArchiveError, match=r"crawl\.jsonl"):
        AppendFile(tmp_path / "crawl.jsonl", at=0)


def test_a_crawl_goes_on_in_its_own_files(tmp_path: Path, mine: Path) -> None:
    received = tmp_path / "received"
    received.mkdir()
    (received / "crawl.jsonl").symlink_to(mine / "crawl.jsonl")
    with pytest.raises(ArchiveError, match=r"crawl.jsonl is a link"):
        AppendFile(received / "crawl.jsonl", at=1)
    (received / "warc").symlink_to(mine / "warc")
    with pytest.raises(InputError, match="leads out of"):
        ArchiveWriter(received / "warc", INFO, 10**6, at=ArchivePosition(0, 0, 0))


# -- exports ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    write_crawl(tmp_path / "crawl", pages(3))
    run_export(tmp_path / "received/export", tmp_path / "crawl", format="jsonl")
    return tmp_path / "received/export"


SHARDS: list[tuple[object, str]] = [
    ({"name": "../../../mine/victim"}, "manifest.json names '../../../mine/victim'"),
    ({"name": "{mine}/victim"}, "manifest.json names '/"),
    ({"name": None}, "manifest.json names None"),
    ({"name": "00000.exe"}, "manifest.json: its shard 0 is damaged"),
    ({"documents": "3"}, "manifest.json: its shard 0 is damaged"),
    ({"bytes": None}, "manifest.json: its shard 0 is damaged"),
    (7, "manifest.json names None"),
]


@pytest.mark.parametrize(("change", "said"), SHARDS, ids=str)
def test_a_manifest_names_files_of_its_export(
    finished: Path, exported: Path, tmp_path: Path, mine: Path, change: object, said: str
) -> None:
    path = exported / "manifest.json"
    manifest = json.loads(path.read_text())
    (shard,) = manifest["shards"]
    manifest["shards"] = [{**shard, **change} if isinstance(change, dict) else change]
    path.write_text(json.dumps(manifest).replace("{mine}", str(mine)))
    before = tree(exported)
    assert said in refused("purge", "nobody.example", finished, "--export", exported)
    with pytest.raises(InputError, match=said.partition(" names")[0]):
        run_export(exported, tmp_path / "crawl", format="jsonl")
    assert tree(exported) == before


def test_a_fifo_in_an_export_is_named(finished: Path, exported: Path) -> None:
    (exported / "documents/00000.jsonl").unlink()
    os.mkfifo(exported / "documents/00000.jsonl")
    with os.fdopen(os.open(exported / "documents/00000.jsonl", os.O_RDWR), "wb") as writer:
        writer.write(b"no document\n")  # what a reader would not wait for
        writer.flush()
        assert "it is a FIFO" in refused("purge", "nobody.example", finished, "--export", exported)


@pytest.mark.parametrize(
    "link", ["documents", "documents/00000.jsonl", "documents/00001.jsonl.open", "work", "work/lock"]
)
def test_no_link_leads_out_of_an_export(finished: Path, exported: Path, tmp_path: Path, mine: Path, link: str) -> None:
    (exported / "work").mkdir(exist_ok=True)
    put_link(exported / link, mine if "." not in link and link != "work/lock" else mine / "victim")
    if link.startswith("work"):
        (exported / "manifest.json").unlink()
    said = f"{exported / link} leads out of {exported}, by a link"
    assert said in refused("purge", "nobody.example", finished, "--export", exported)
    with pytest.raises(InputError, match="by a link"):
        run_export(exported, tmp_path / "crawl", format="jsonl")


@pytest.mark.parametrize(
    "link", ["warc", "warc/pages-00000.warc.gz", "warc/index.cdxj", "warc/text.cdxj", "crawl.jsonl"]
)
def test_no_link_leads_out_of_what_is_exported(tmp_path: Path, mine: Path, link: str) -> None:
    run = write_crawl(tmp_path / "received/run", pages(3))
    elsewhere = tmp_path / "elsewhere"
    shutil.move(run / link, elsewhere)
    (run / link).symlink_to(elsewhere)
    with pytest.raises(InputError, match="by a link"):
        run_export(tmp_path / "out", run)


# -- corpora ----------------------------------------------------------------------------------------------------------


def change_json(path: Path, change: Callable[[dict], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_an_index_of_archive_files_names_files_of_the_collection(tmp_path: Path) -> None:
    write(tmp_path / "corpus/a.warc.gz", warc_page(1))
    write(tmp_path / "other/a.warc.gz", warc_page(2))
    whole = WarcCorpus(tmp_path / "corpus", tmp_path / "index")
    keys = list(whole.keys())
    whole.close()
    before = (tmp_path / "index" / MANIFEST).read_bytes()
    for changed in (
        lambda manifest: manifest["files"][0].__setitem__(0, "../other/a.warc.gz"),
        lambda manifest: manifest["files"][0].__setitem__(1, str(tmp_path / "other/a.warc.gz")),
        lambda manifest: manifest.update(columns="../index/" + manifest["columns"]),
    ):
        change_json(tmp_path / "index" / MANIFEST, changed)
        corpus = WarcCorpus(tmp_path / "corpus", tmp_path / "index")
        assert [corpus.page(key).url for key in corpus.keys()] == keys
        assert (tmp_path / "index" / MANIFEST).read_bytes() == before
        corpus.close()


def test_a_url_index_names_its_own_folder(tmp_path: Path) -> None:
    write_tree(tmp_path / "tree")
    corpus = ClueWeb22Corpus(tmp_path / "tree", url_index=tmp_path / "index")
    build_url_index(corpus, tmp_path / "index")
    path = tmp_path / "index/index.json"
    before = path.read_bytes()
    change_json(path, lambda manifest: manifest.update(columns="../index/" + manifest["columns"]))
    with pytest.raises(InputError, match=r"index.json names"):
        UrlIndex(tmp_path / "index", corpus)
    build_url_index(corpus, tmp_path / "index")
    assert path.read_bytes() == before


def test_a_build_does_not_follow_links(tmp_path: Path, mine: Path) -> None:
    write(tmp_path / "a.warc.gz", warc_page(1))
    source, to = WarcCorpus(tmp_path / "a.warc.gz", tmp_path / "index"), tmp_path / "received/tree"
    build(source, to)
    change_json(to / "build.json", lambda state: state.update(finished=False))
    for link in (".build", "txt/en", "txt"):
        put_link(to / link, mine)
        with pytest.raises(InputError, match=f"{link} leads out of .* by a link"):
            build(source, to)
        (to / link).unlink()

"""Every setting has a default that its own check accepts, a meaning, and a clear word on values that it refuses."""

from __future__ import annotations

from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings, default_settings

from crawl4llm.addon.run import _WENT, _read_options
from crawl4llm.base.errors import InputError
from crawl4llm.base.processes import cores
from crawl4llm.cluster_options import MOST_PARTITIONS
from crawl4llm.engine.settings import misspelt
from crawl4llm.options import GROUPS, WENT, Options, meanings, read_options, setting_name
from crawl4llm.parts.scope import FILE_TYPES
from crawl4llm.parts.site_rules import LISTS
from crawl4llm.parts.url_traps.rules import RULES
from crawl4llm.policies import known_policies
from crawl4llm.scoring.text import EXTRACTORS

OPTIONS = {option.name: option for option in fields(Options)}
MEANINGS = meanings(Options)

_EXPRESSIONS: list[tuple[object, object]] = [
    ("", ()),
    (r"/tag/, a{2,3}b,./deny.txt, /tag/", ("/tag/", "a{2,3}b", "./deny.txt")),
    (["a,b", "c"], ("a,b", "c")),
]
GOOD: dict[str, list[tuple[object, object]]] = {
    "corpus": [("/a b/ä", "/a b/ä"), (Path("/corpus"), "/corpus"), ("", None)],
    "clueweb22_target_prefix": [("clueweb22-en0", "clueweb22-en0"), ("", "")],
    "simulation_text": [("corpus", "corpus"), ("extracted", "extracted")],
    "simulation_owner_delay": [("0", 0.0), ("30", 30.0), (2.5, 2.5)],
    "simulation_capacity": [("0", 0.0), ("100", 100.0), (0.1, 0.1)],
    "text_extractor": [(name, name) for name in EXTRACTORS],
    "scorer_model": [("model.bin", "model.bin"), (Path("model.ftz"), "model.ftz"), ("", None)],
    "scorer_label": [("__label__größe", "__label__größe")],
    "score_cache": [("/scores", "/scores"), (Path("scores"), "scores"), ("", "")],
    "scoring_workers": [("-1", -1), ("0", 0), (2, 2), (4 * cores(), 4 * cores())],
    "url_policy": [
        *((name, name) for name in (*known_policies(), "my.policies.Best", "scorer:length", "scorer:my.own.Scorer")),
    ],
    "order": [("desc", "desc"), ("asc", "asc")],
    "hot_queue_topic": [
        ("cheese", ("cheese",)),
        (" blue  cheese,, wine ", ("blue cheese", "wine")),
        (["blue cheese", "wine"], ("blue cheese", "wine")),
        ("", ()),
        ([], ()),
    ],
    "crawl_parts": [
        ("my.own.Part, other.Part", ("my.own.Part", "other.Part")),
        (["my.own.Part"], ("my.own.Part",)),
        ("", ()),
    ],
    "harmonic_ranks": [("ranks.txt.gz", "ranks.txt.gz"), (Path("ranks"), "ranks"), ("", None)],
    "bound_scores": [("bound.tsv", "bound.tsv"), (Path("bound"), "bound"), ("", None)],
    "ensemble_weights": [
        ("fasttext:1,length:-0.5", "fasttext:1,length:-0.5"),
        ("my.own.Scorer: 1e-3", "my.own.Scorer: 1e-3"),
        ("", ""),
    ],
    "crawl_scope": [("web", "web"), ("domain", "domain")],
    "scope_domains": [
        ("", ()),
        (" EDU,.ac.uk, münchen.de,edu", ("edu", "ac.uk", "xn--mnchen-3ya.de")),
        ("./domains.txt,example.org", ("./domains.txt", "example.org")),
        (["org"], ("org",)),
    ],
    "scope_https_only": [("1", True), ("False", False)],
    "scope_skipped_types": [("", ()), ("media, Images,.PDF,media", ("media", "images", ".pdf")), ([".7z"], (".7z",))],
    "blocklists": [("", ()), (" a.txt,b c.txt,a.txt", ("a.txt", "b c.txt")), ([Path("/a")], ("/a",))],
    "known_urls": [("", ()), ("a.known, b.txt,a.known", ("a.known", "b.txt")), ([Path("/a")], ("/a",))],
    "url_budget": [("0", 0), ("10", 10), (3, 3)],
    "url_traps": [("", ()), ("cgi_bin, calendar", ("cgi_bin", "calendar")), (["cgi_bin"], ("cgi_bin",))],
    "site_rules": [("", ()), ("wikis, blogs", ("wikis", "blogs")), (["shops"], ("shops",))],
    "scope_deny": _EXPRESSIONS,
    "scope_allow": _EXPRESSIONS,
    "url_alias_pairs": [("0", 0), (5, 5)],
    "url_worthless_pages": [("0", 0), (20, 20)],
    "skipped_link_types": [("", ()), ("nofollow, ugc", ("nofollow", "ugc")), (["sponsored"], ("sponsored",))],
    "noindex": [("count", "count"), ("archive", "archive"), ("drop", "drop")],
    "crawl_languages": [("", ()), ("en, pt-BR", ("en", "pt-br"))],
    "near_duplicates_worthless": [("1", True), ("False", False)],
    "near_duplicates": [("off", "off"), ("follow", "follow"), ("leave", "leave")],
    "known_links": [("links.known", "links.known"), (Path("links"), "links"), ("", None)],
    "known_texts": [("texts.known", "texts.known"), (Path("texts"), "texts"), ("", None)],
    "mixture": [("texts.known", "texts.known"), (Path("texts"), "texts"), ("", None)],
    "lower_left_overs": [("1", True), ("False", False)],
    "quality_threshold": [("0.9", 0.9), (1, 1.0), ("-2", -2.0), ("", None)],
    "cluster": [
        *(
            (url, url)
            for url in ("valkey://h:6379/0", "rediss://:p%40ss@h", "redis://[::1]:1/", "unix:///run/v.sock?db=1")
        ),
        ("", None),
    ],
    "storage": [("s3://bucket/a/b", "s3://bucket/a/b"), ("file:///shared/dir", "file:///shared/dir"), ("", None)],
    "crawl_partitions": [("0", 0), ("1", 1), (64, 64)],
    "cluster_lease": [("30", 30.0), (0.5, 0.5)],
    "crawl_max_pages": [("1", 1), ("20_000_000", 20_000_000), (5, 5)],
    "crawl_batch_size": [("0", 0), ("500", 500)],
    "crawl_seed": [("0", 0), (7, 7)],
    "crawl_seeds": [("1", 1), (100, 100)],
    "crawl_concurrent_leases": [("0", 0), ("8", 8)],
    "crawl_patience": [("0", 0.0), ("0.5", 0.5), (1, 1.0)],
    "frontier_max_urls": [("0", 0), ("1_000_000", 1_000_000)],
    "frontier_max_urls_per_host": [("0", 0), (10, 10)],
    "visited_cache": [("1", 1), ("2_000", 2000)],
    "commit_interval_pages": [("1", 1), (500, 500)],
    "commit_interval_seconds": [("0.5", 0.5), (60, 60.0)],
    "commit_fsync": [("1", True), ("False", False)],
    "crawl_max_attempts": [("1", 1)],
    "crawl_max_errors": [("1", 1)],
    "body_limit": [("0", 0), ("1_000_000", 1_000_000)],
    "opt_out_fetch": [("1", True), (False, False)],
    "network_allowed": [
        ("", ()),
        ("127.0.0.1", ("127.0.0.1/32",)),
        (" 10.0.0.0/8,fd00::/8,10.0.0.0/8", ("10.0.0.0/8", "fd00::/8")),
        (["::1/128"], ("::1/128",)),
    ],
    "sitemaps": [("0", 0), ("1_000", 1000)],
    "dns_hosts": [("hosts", "hosts"), (Path("hosts"), "hosts"), ("", None)],
    "output_dir": [("out", "out"), (Path("out"), "out"), ("", None)],
    "warc_enabled": [("0", False), ("False", False), (False, False), ("1", True), ("true", True), (1, True)],
    "warc_max_bytes": [("1", 1), ("1_000", 1000)],
    "warc_prefix": [("crawl", "crawl"), ("p" * 128, "p" * 128), ("ä b", "ä b")],
    "delay_factor": [("0", 0.0), (5, 5.0), ("2.5", 2.5)],
    "ip_rate": [("0", 0.0), (5, 5.0), ("2.5", 2.5)],
    "crawl_delay_cap": [("300", 300.0), (0.5, 0.5)],
    "crawl_wait": [("300", 300.0), (2, 2.0)],
    "disk_min_free": [("0", 0), ("1_000_000", 1_000_000)],
    "retry_waits": [("60,600, 3600", (60.0, 600.0, 3600.0)), ([1, 2.5], (1.0, 2.5)), ("5", (5.0,))],
    "shutdown_grace": [("0", 0.0), (10, 10.0), ("2.5", 2.5)],
    "warc_max_age": [("0", 0.0), ("3600", 3600.0), (0.5, 0.5)],
    "warc_compression": [("gzip", "gzip"), ("zstd", "zstd")],
    "warc_text": [("1", True), ("False", False)],
    "warc_revisits": [("0", 0), ("2_000", 2000)],
    "warc_operator": [("A. N. Other", "A. N. Other"), ("", None)],
    "corpus_canonical_links": [("1", True), (False, False)],
    "scorer": [("length", "length"), ("my.own.Scorer", "my.own.Scorer")],
    "archive_credentials": [("1", True), ("0", False)],
    "dry_run": [("1", True), ("0", False), (True, True)],
    "executor": [({"qos": "x"}, {"qos": "x"}), ('{"time": "1:00:00"}', {"time": "1:00:00"})],
    "own_settings": [({}, None), ('{"A": 1}', None)],
    "live_logging": [
        ("", ()),
        ("tensorboard", ("tensorboard",)),
        (" wandb, tensorboard,wandb", ("wandb", "tensorboard")),
        (["wandb"], ("wandb",)),
    ],
    "metrics_port": [
        *((9410, "127.0.0.1:9410"), ("65535", "127.0.0.1:65535"), ("0.0.0.0:9410", "0.0.0.0:9410")),
        *(("[::1]:9410", "::1:9410"), ("::1:9410", "::1:9410"), ("", None)),
    ],
    "progress_bar": [("auto", "auto"), ("on", "on"), ("off", "off")],
}

_EDGES = ["0001-01-01T00:00:00+02:00", "9999-12-31T23:59:59-00:01", "0000-01-01", "10000-01-01"]
_NO_WHOLE_NUMBER = ["", "many", "1.5", "nan", "1e3", "0x10", True, 2.5, [1], 1 << 63]
_NOT_POSITIVE = ["0", 0, "-1", *_NO_WHOLE_NUMBER]
_NEGATIVE = ["-1", -1, *_NO_WHOLE_NUMBER]

BAD: dict[str, list[object]] = {
    "corpus": [["/corpus"], "\ud800"],
    "clueweb22_target_prefix": [],
    "simulation_text": ["", "html", "CORPUS", ["corpus"]],
    "simulation_owner_delay": ["", "-1", "nan", "inf", "1e9", "long", [1]],
    "simulation_capacity": ["", "-1", "nan", "inf", "much"],
    "text_extractor": ["", "readability", "Trafilatura", ["trafilatura"]],
    "scorer_model": [["model.bin"], {"model": 1}],
    "scorer_label": ["", " \t"],
    "score_cache": [["/scores"], " "],
    "scoring_workers": ["-2", 4 * cores() + 1, "1_000_000", *_NO_WHOLE_NUMBER],
    "url_policy": ["", "best", "Influence", "__init__", "scorer:", "scorer:words", "scorer"],
    "order": ["", "ascending", "DESC"],
    "hot_queue_topic": [5, ["cheese", 5], {"cheese": 1}, b"cheese"],
    "crawl_parts": [5, ["my.own.Part", 5], {"my.own.Part": 1}],
    "harmonic_ranks": [["ranks"]],
    "bound_scores": [["bound.tsv"]],
    "ensemble_weights": [
        "fasttext",
        "fasttext:",
        ":1",
        "fasttext:nan",
        "length:inf",
        "words:1",
        "fasttext:1,",
        "a:b:c",
        5,
    ],
    "crawl_scope": ["", "host", "Web"],
    "scope_domains": [5, "no domain", "https://example.org", ["a..b"], {"edu": 1}],
    "scope_https_only": ["", "maybe", 2],
    "scope_skipped_types": [5, "movies", "pdf", "images,.p-f", {".pdf": 1}],
    "blocklists": [5, {"a": 1}, "\ud800"],
    "known_urls": [5, {"a": 1}],
    "url_budget": _NEGATIVE,
    "url_traps": ["all", "cgi_bin;calendar", 1, ["x"]],
    "site_rules": ["all", "wikis;blogs", 1, ["x"]],
    "scope_deny": [5, {"a": 1}, [1]],
    "scope_allow": [5, {"a": 1}, [1]],
    "url_alias_pairs": _NEGATIVE,
    "url_worthless_pages": _NEGATIVE,
    "skipped_link_types": ["all", "nofollow;ugc", 1, ["x"]],
    "noindex": ["", "on", True],
    "crawl_languages": ["english please", "en;de", 1],
    "near_duplicates_worthless": ["", "maybe", 2],
    "near_duplicates": ["", "on", True],
    "known_links": [5, " ", "\ud800"],
    "known_texts": [5, " ", "\ud800"],
    "mixture": [5, " ", "\ud800"],
    "lower_left_overs": ["", "maybe", 2],
    "quality_threshold": ["nan", "inf", "1e308", "high", [0.5]],
    "cluster": [
        "h:6379",
        "http://h",
        "valkey://",
        "valkey://h:port/0",
        "valkey://h/zero",
        "unix:",
        6379,
        ["valkey://h"],
    ],
    "storage": ["bucket", "s3:///x", "file://host/x", "file:", "gs://b/x", "s3://b/x#y", 5],
    "crawl_partitions": _NEGATIVE,
    "cluster_lease": ["", "0", "-1", "nan", "inf", "long"],
    "crawl_max_pages": _NOT_POSITIVE,
    "crawl_batch_size": _NEGATIVE,
    "crawl_seed": _NEGATIVE,
    "crawl_seeds": _NOT_POSITIVE,
    "crawl_concurrent_leases": _NEGATIVE,
    "crawl_patience": ["", "-0.1", "1.01", "nan", "inf", "some", [0.5]],
    "frontier_max_urls": _NEGATIVE,
    "frontier_max_urls_per_host": _NEGATIVE,
    "visited_cache": _NOT_POSITIVE,
    "commit_interval_pages": _NOT_POSITIVE,
    "commit_interval_seconds": ["", "0", "-1", "nan", "inf", "soon"],
    "commit_fsync": ["", "maybe", 2],
    "crawl_max_attempts": _NOT_POSITIVE,
    "crawl_max_errors": _NOT_POSITIVE,
    "body_limit": _NEGATIVE,
    "opt_out_fetch": ["", "maybe", 2],
    "network_allowed": ["127.0.0.1/8", "127.0.0.1/33", "localhost", "10.0.0.0/8;::1", 1, [1]],
    "sitemaps": _NEGATIVE,
    "dns_hosts": [["hosts"]],
    "output_dir": [["out"]],
    "warc_enabled": ["", "maybe", "2", 2, [True]],
    "warc_max_bytes": _NOT_POSITIVE,
    "warc_prefix": ["", " ", "a/b", "../b", "a\nb", "p" * 129, "ä" * 65],
    "delay_factor": ["", "-1", "nan", "inf", "long"],
    "ip_rate": ["", "-1", "nan", "inf", "long"],
    "crawl_delay_cap": ["", "0", "-1", "nan", "inf", "long"],
    "crawl_wait": ["", "0", "-1", "nan", "inf", "long"],
    "disk_min_free": _NEGATIVE,
    "retry_waits": ["", "0", "60,", "60,-1", "nan", 60, []],
    "shutdown_grace": ["", "-1", "nan", "inf", "soon"],
    "warc_max_age": ["", "-1", "nan", "inf", "soon"],
    "warc_compression": ["", "bzip2", "GZIP"],
    "warc_text": ["", "maybe", 2],
    "warc_revisits": _NEGATIVE,
    "warc_operator": [["A. N. Other"]],
    "corpus_canonical_links": ["", "some"],
    "scorer": ["", "words", 7],
    "archive_credentials": ["", "some", 2],
    "dry_run": ["", "maybe", 2],
    "executor": ["[1]", "{", 5, "local", ""],
    "own_settings": ["[1]", "{", 5, "[" * 100_000],
    "live_logging": ["mlflow", "wandb,W&B", 1, ["wandb", "x"]],
    "metrics_port": [0, 65536, -1, "a", "localhost:9410", "0.0.0.0:", True],
    "progress_bar": ["", "yes", True],
}


def read(name: str, value: object) -> Any:
    """The checked value of a setting, when Scrapy has it so."""
    return getattr(read_options(Settings({OPTIONS[name].name.upper(): value})), name)


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS.keys())
def test_default_and_meaning(option: Field[Any]) -> None:
    assert option.default is None or option.metadata["check"](option.default) == option.default
    meaning = MEANINGS.get(option.name, "")
    assert meaning.endswith(".") or option.name == "own_settings", "which only a run records"
    assert "\n" not in meaning
    assert "|" not in meaning, "it stands in a table"


def test_every_setting_is_tested_here() -> None:
    assert GOOD.keys() == BAD.keys() == OPTIONS.keys()


@pytest.mark.parametrize(
    ("name", "value", "read_as"), [(name, *pair) for name, pairs in GOOD.items() for pair in pairs]
)
def test_values_that_are_taken(name: str, value: object, read_as: object) -> None:
    found = read(name, value)
    assert found == read_as
    assert type(found) is type(read_as)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_values_that_are_refused(name: str, value: object) -> None:
    with pytest.raises(InputError) as error:
        read(name, value)
    message = str(error.value)
    assert message.startswith(f"{name.upper()} = {value!r:.300} "), "a long value is cut"
    assert "\n" not in message
    assert "must " in message or "known are: " in message, "it says what to do"


@pytest.mark.parametrize(
    "url", ["valkey://me:s3cret@h:port/0?password=s3cret", "valkey:/:s3cret@\nh", "s3://me:s3cret@b/x"]
)
def test_no_error_shows_a_password(url: str) -> None:
    for name in ("cluster", "storage"):
        with pytest.raises(InputError) as error:
            read(name, url)
        assert "s3cret" not in str(error.value)


def test_defaults_where_nothing_is_set() -> None:
    assert read_options(Settings()) == Options()
    assert read_options(Settings({"CRAWL_MAX_PAGES": None, "OUTPUT_DIR": None})) == Options()


def test_settings_are_the_fields_in_upper_case() -> None:
    assert [setting_name(option) for option in OPTIONS.values()] == [name.upper() for name in OPTIONS]


def test_each_setting_is_in_one_group() -> None:
    grouped = [option for owner in GROUPS.values() for option in fields(owner)]
    assert sorted(option.name for option in grouped) == sorted(OPTIONS)
    assert len(MEANINGS) <= 87


def test_what_a_meaning_names_is_what_there_is() -> None:
    """A docstring cannot be made of a table."""
    assert f"{MOST_PARTITIONS:,} at most. 0: {Options(storage='file:///x').partitions}." in MEANINGS["crawl_partitions"]
    assert ", ".join(f"`{name}`" for name in RULES) in MEANINGS["url_traps"]
    assert ", ".join(f"`{name}`" for name in LISTS) in " ".join(MEANINGS["site_rules"].split())
    assert ", ".join(f"`{name}`" for name in FILE_TYPES) in MEANINGS["scope_skipped_types"]


@pytest.mark.parametrize("name", WENT)
def test_a_setting_that_went_is_told_with_what_took_its_place(name: str) -> None:
    assert name.lower() not in OPTIONS
    with pytest.raises(InputError, match=rf"^setting {name} was removed: \S.*; leave it out$"):
        read_options(Settings({name: 1}))
    if name in _WENT:
        with pytest.raises(InputError, match=rf"^setting {name} was removed: "):
            _read_options(Settings({name: 1}))
    else:
        _read_options(Settings({name: 1}))  # in another project it may be its own


def test_workers() -> None:
    assert Options(scoring_workers=-1).workers == cores() >= 1
    assert Options(scoring_workers=0).workers == 0
    assert Options(scoring_workers=3).workers == 3


def test_a_slip_of_the_pen_is_noticed() -> None:
    slips = {
        **{
            "CRAWL_MAX_PAGE": ["CRAWL_MAX_PAGES"],
            "URL_POLICYS": ["URL_POLICY"],
            "crawl-max-pages": ["CRAWL_MAX_PAGES"],
        },
        **{"crawl_max_pages": ["CRAWL_MAX_PAGES"], "MAX_PAGES": ["CRAWL_MAX_PAGES"], "max_page": ["CRAWL_MAX_PAGES"]},
        **{"jobdir": ["JOBDIR"], "JOB_DIR": ["JOBDIR"], "MAX_URLS_PER_HOST": ["FRONTIER_MAX_URLS_PER_HOST"]},
    }
    one_word = {"TEXT": ["SIMULATION_TEXT", "WARC_TEXT"], "policy": ["URL_POLICY"]}
    right = ["CRAWL_MAX_PAGES", "CONCURRENT_REQUESTS", "LOG_LEVEL", "DOWNLOAD_DELAY", "JOBDIR", "THEIR_OWN", "IMAGES_X"]
    given = dict.fromkeys([*slips, *one_word, *right])
    assert misspelt(Settings(given)) == slips
    assert misspelt(Settings(given, priority="cmdline")) == {**slips, **one_word}


@pytest.mark.parametrize("priority", ["default", "project", "cmdline"])
def test_no_setting_of_scrapys_is_a_slip(priority: str) -> None:
    settings = Settings()
    for name in vars(default_settings):
        settings.set(name, {}, priority=priority)
    assert misspelt(settings) == {}

"""The dataset card of an export.

It is ``README.md``, by which ``datasets.load_dataset`` and the Hugging Face Hub read the export. Its head is YAML. It
names the data files (a reader would take ``manifest.json`` for one), the types of all fields (a reader would guess them
from the first documents, whose influence may be null), and the number of documents. The card says nothing that the
manifest does not, so it can be written again from that.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.reasons import OPT_OUT
from crawl4llm.base.terminal import cell
from crawl4llm.tools.export.formats import COMPRESSORS, DATE_TYPE, NUMBERS, PARQUET, REPEATED

CARD = "README.md"
OPT_OUT_FIELDS: Final = ("robots", "opt-out")
"""Fields of an archive's warcinfo record about the manners by which its pages were fetched."""

OPT_OUTS_KNOWN: Final = "opt_outs_known"
"""The entry of the manifest that says for each source whether it has opt-outs; older exports lack it."""
UNKNOWN_OPT_OUTS: Final = (
    "its archive lacks the signals of response heads and site files for some pages; signals in HTML were read"
)

_TOKENS: Final = "tokens"
_FIELDS: Final = {
    "id": "the document key",
    "text": "the main text of the page",
    "source": "always `crawl4llm`, for dolma",
    "created": "the date, or nothing; for dolma",
    "url": "of the page",
    "date": "time of the fetch, in UTC",
    "language": "as archived, or else detected in the text; null if unclear",
    "influence": "the score of the text by the model below, higher is better; null without a score",
    "words": "words of the text, divided by blanks",
    "link_share": "share of the text's words in links, from 0 to 1; null without HTML",
    "warc_file": "the archive file of the page",
    "warc_offset": "offset of its record in that file",
    "warc_length": "length of the record",
    "digest": "the record's WARC-Payload-Digest",
    "opt_out_signals": "signals of site and page about its uses, none of which forbids training; or null",
    _TOKENS: "tokens of the text, by the tokenizer named above",
}
_METADATA: Final = ("WARC-Target-URI", "WARC-Date", *REPEATED)
_JSON_ONLY: Final = ("source", "created")
_BOUNDS: Final = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
"""Bounds of the Hub's size categories."""
_CODE: Final = re.compile(r"([a-z]{2,3})(?:[-_,].*)?", re.IGNORECASE)
"""A language as the Hub takes it, with a region or other languages of the page behind it."""
_MOST_LISTED: Final = 50


def card(manifest: Mapping[str, Any], path: Path) -> str:
    """Return the card of the export that a manifest describes; values from data are escaped.

    Raises InputError, naming ``path``, if it is no manifest of an export.
    """
    try:
        return "\n".join(_lines(manifest))
    except (AttributeError, LookupError, TypeError, ValueError):
        raise damaged(path) from None


def damaged(manifest: Path) -> InputError:
    """Return the one-line error for a manifest that is no export's."""
    return InputError(f"{manifest} is damaged; remove the export and make it again")


def _lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    names = [shard["name"] for shard in manifest["shards"]]
    form = names[0].partition(".")[2] if names else manifest["settings"]["format"]
    form = form if form in COMPRESSORS else PARQUET
    languages = _languages(manifest)
    documents, words, size = manifest["documents"], manifest["tokens"]["words"], manifest["text_bytes"]
    tokens = manifest["tokens"].get("tokenizer")
    counted = f"{words:,} words"
    if tokens is not None:
        counted += f" ({tokens:,} tokens by the tokenizer {cell(manifest['settings']['tokenizer'])})"
    left = set(_JSON_ONLY if form == PARQUET else ()) | ({_TOKENS} if tokens is None else set())
    types = {name: _type(name) for name in _FIELDS if name not in left}
    if form == PARQUET:
        types["date"] = DATE_TYPE
    yield "---"
    yield from _head(form, documents, size, languages, types)
    yield from ("---", "", "# Texts of crawled pages", "")
    yield (
        f"{documents:,} documents with {counted}, {size:,} bytes of text, in {len(names):,} files. "
        f"Made by `scrapy export` of crawl4llm {cell(manifest.get('crawl4llm'))}. `manifest.json` has the size and "
        "SHA-256 of each file, and all settings. A purge rewrites it and this card."
    )
    yield from ("", "```python", 'datasets.load_dataset("path/of/this/folder", split="train")', "```", "")
    if form.endswith("zst"):
        yield from (
            "The files are compressed with Zstandard: `datasets` needs the package `zstandard` to read them.",
            "",
        )
    fields = [(f"`{name}`", kind, _FIELDS[name]) for name, kind in types.items()]
    if form != PARQUET:
        fields.append(("`metadata`", "struct", ", ".join(f"`{name}`" for name in _METADATA)))
    yield from _table("## Fields", ("field", "type", "what"), fields)
    listed = [(cell(name or "not known"), f"{count:,}") for name, count in languages.most_common(_MOST_LISTED)]
    if len(languages) > _MOST_LISTED:
        listed.append(("others", f"{sum(count for _, count in languages.most_common()[_MOST_LISTED:]):,}"))
    yield from _table("## Languages", ("language", "documents"), listed)
    yield from _table("## Sources", ("source", "kind", "crawl", "model of its influence scores"), _sources(manifest))
    if scored_by := manifest.get("model_digest"):
        yield from (f"Pages without a score were scored by the model with the digest {cell(scored_by)}.", "")
    left_out = manifest.get("left_out", {}).items()
    yield from _table("## Left out", ("reason", "pages"), [(cell(why), f"{count:,}") for why, count in left_out])
    yield from _opt_outs(manifest)


def _head(
    form: str, documents: int, text_bytes: int, languages: Mapping[str, int], types: Mapping[str, str]
) -> Iterator[str]:
    codes = sorted({found[1].lower() for name in languages if (found := _CODE.fullmatch(name))})
    if codes:
        yield from ("language:", *(f"- {json.dumps(code)}" for code in codes))  # quoted: `no` is false in YAML
    yield from ("size_categories:", f"- {_size(documents)}", "configs:", "- config_name: default", "  data_files:")
    yield from ("  - split: train", f"    path: documents/*.{form}", "dataset_info:", "  features:")
    for name, kind in types.items():
        yield from (f"  - name: {name}", f"    dtype: {kind}")
    if form != PARQUET:
        yield from ("  - name: metadata", "    struct:")
        for name in _METADATA:
            yield from (f"    - name: {name}", f"      dtype: {_type(name)}")
    yield from ("  splits:", "  - name: train", f"    num_bytes: {text_bytes}", f"    num_examples: {documents}")


def _size(documents: int) -> str:
    place = max(len(str(documents)) - 3, 0)
    if not place:
        return f"n<{_BOUNDS[0]}"
    return f"{_BOUNDS[place - 1]}<n<{_BOUNDS[place]}" if place < len(_BOUNDS) else f"n>{_BOUNDS[-1]}"


def _type(field: str) -> str:
    return NUMBERS.get(field, "string")


def _languages(manifest: Mapping[str, Any]) -> Counter[str]:
    """Count documents by language; empty if a file has no counts, as those of older exports."""
    counted = [shard.get("languages") for shard in manifest["shards"]]
    return Counter() if None in counted else sum(map(Counter, counted), Counter())


def _sources(manifest: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for source in manifest.get("sources", []):
        yield tuple(cell(source.get(name) or "-") for name in ("given", "kind", "crawl_id", "model_digest"))


def _opt_outs(manifest: Mapping[str, Any]) -> Iterator[str]:
    notes = zip(manifest.get("sources", []), manifest.get("opt_out", []), strict=False)
    rows = [
        (cell(source.get("given")), *(cell(said.get(name) or "-") for name in OPT_OUT_FIELDS)) for source, said in notes
    ]
    left_out = sum(count for why, count in manifest.get("left_out", {}).items() if why.startswith(f"{OPT_OUT}/"))
    yield (
        f"## Opt-outs\n\nPages that opt out of training are left out, {left_out:,} in all (`opt_out/...` above, by "
        "signal): by signals of their site before the fetch, by the heads of responses and of HTML, or by later "
        "signals in the archives."
    )
    yield ""
    unknown = map(cell, unknown_opt_outs(manifest))
    yield from (f"**Opt-outs unknown** of {given}: {UNKNOWN_OPT_OUTS}.\n" for given in unknown)
    title = "How the pages were fetched, according to the archives:"
    yield from _table(title, ("source", *OPT_OUT_FIELDS), rows)
    columns = ("date", "domain", "documents")
    purged = [tuple(cell(purge[name]) for name in columns) for purge in manifest.get("purged", [])]
    yield from _table("Removed since, for sites that opted out:", columns, purged)
    yield from ("To remove another site: `scrapy archive purge DOMAIN ARCHIVE --export FOLDER`.", "")


def unknown_opt_outs(manifest: Mapping[str, Any]) -> list[Any]:
    """Return the sources without opt-outs, as the user named them."""
    known = zip(manifest.get("sources", []), manifest.get(OPT_OUTS_KNOWN, []), strict=False)
    return [source.get("given") for source, tells in known if not tells]


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table with a line above it; nothing if it has no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if lines:
        yield from (title, "", f"| {' | '.join(columns)} |", f"|{'-|' * len(columns)}", *lines, "")

"""The table of opt-outs as data: each signal, with its value and place, and the actions that it forbids.

The specifications change, so each has its version and date. So has the list of training crawlers, whose groups in
robots.txt count as statements on training. This module is the source of docs/opt-outs.md.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class Action(Enum):
    """An action of a crawl for pretraining on a page."""

    FETCH = "fetch"
    ARCHIVE = "archive"
    SCORE = "score and learn"
    EXPAND = "expand"
    """Follow its links."""
    EXPORT = "export for training"


ROBOTS_TXT, HEADER, META, TDMREP, OPERATOR = "robots.txt", "header", "meta", "tdmrep.json", "operator"
"""Places of signals."""
KNOWN_BEFORE: Final = frozenset({ROBOTS_TXT, TDMREP})
"""Places that can be read before a page is fetched."""

CONTENT_SIGNAL, CONTENT_USAGE, AI_CRAWLER = "Content-Signal", "Content-Usage", "AI-crawler"
ROBOTS, TDM_RESERVATION, TDM_POLICY, RSL = "robots", "tdm-reservation", "tdm-policy", "RSL"
"""Signals. ``robots`` is X-Robots-Tag and the robots meta; ``AI-crawler`` is a group of robots.txt for a crawler that
collects training data."""
BLOCKED: Final = "blocked"
"""Signal of an operator, who was asked by other ways than the web."""
DISALLOW: Final = "disallow"
"""Value of AI-crawler."""
ANY: Final = "..."
"""Stands for all values of a signal, such as URLs."""

Actions = frozenset[Action]
_ENDS: Final[Actions] = frozenset({Action.ARCHIVE, Action.SCORE, Action.EXPAND, Action.EXPORT})
"""A page that may not be stored has no further use."""
_ALL: Final[Actions] = frozenset(Action)
_EXPORT: Final[Actions] = frozenset({Action.EXPORT})
_EXPAND: Final[Actions] = frozenset({Action.EXPAND})
_NOTHING: Final[Actions] = frozenset()


class Specification(NamedTuple):
    """The specification of a signal."""

    title: str
    version: str
    """The version and date that are implemented here."""
    url: str


CONTENT_SIGNALS: Final = Specification(
    "Content Signals", "policy text of 2025-09-24, `use` as of 2026-08-31", "https://contentsignals.org/"
)
AIPREF: Final = Specification(
    "AI Preferences, IETF",
    "draft-ietf-aipref-vocab-06 (2026-04-28), draft-ietf-aipref-attach, editors' copy of 2026-08-19",
    "https://datatracker.ietf.org/doc/draft-ietf-aipref-vocab/06/",
)
RFC_9309: Final = Specification(
    "Robots Exclusion Protocol", "RFC 9309 (2022-09)", "https://www.rfc-editor.org/rfc/rfc9309"
)
ROBOTS_META: Final = Specification(
    "Robots meta tag and X-Robots-Tag",
    "HTML 4.01, B.4.1 (1999-12-24); Google's description (as of 2026-11)",
    "https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag",
)
NO_AI: Final = Specification(
    "noai and noimageai, DeviantArt",
    "2022-11-11",
    "https://www.deviantart.com/team/journal/UPDATE-All-Deviations-Are-OptedOut-of-AI-Datasets-934500371",
)
TDM_REP: Final = Specification(
    "TDM Reservation Protocol, W3C community group",
    "final report (2024-02-02)",
    "https://www.w3.org/community/reports/tdmrep/CG-FINAL-tdmrep-20240202/",
)
STEERING: Final = Specification("Steering a crawl", "`blocked` in control.json", "operating.md#steering")
RSL_1: Final = Specification("Really Simple Licensing", "1.0 (2025-11-06)", "https://rslstandard.org/rsl")


class Row(NamedTuple):
    """A value of a signal, with the actions that it forbids."""

    signal: str
    value: str
    places: tuple[str, ...]
    forbids: Actions
    """FETCH counts only in places that can be read before the fetch."""
    forbids_fetched: Actions
    """The actions forbidden with OPT_OUT_FETCH = 1."""
    specification: Specification
    why: str


_ROBOTS_AND_HEADER: Final = (ROBOTS_TXT, HEADER)
_PAGE: Final = (HEADER, META)

TABLE: Final = (
    Row(
        *(CONTENT_SIGNAL, "ai-train=no", _ROBOTS_AND_HEADER, _ALL, _EXPORT, CONTENT_SIGNALS),
        "no training or fine-tuning of AI models; this crawl fetches for nothing else",
    ),
    Row(
        *(CONTENT_SIGNAL, "ai-input=no", _ROBOTS_AND_HEADER, _ALL, _EXPORT, CONTENT_SIGNALS),
        "not to be input to an AI model, such as a scorer; a page without a score is of no use",
    ),
    Row(
        *(CONTENT_SIGNAL, "use=immediate", _ROBOTS_AND_HEADER, _ALL, _ALL, CONTENT_SIGNALS),
        "nothing may be stored or reused",
    ),
    Row(
        *(CONTENT_SIGNAL, "use=reference", _ROBOTS_AND_HEADER, _ALL, _EXPORT, CONTENT_SIGNALS),
        "to be indexed, quoted and linked to, not to be taken in whole",
    ),
    Row(
        *(CONTENT_SIGNAL, "search=no", _ROBOTS_AND_HEADER, _NOTHING, _NOTHING, CONTENT_SIGNALS), "about search engines"
    ),
    Row(
        *(CONTENT_USAGE, "train-ai=n", _ROBOTS_AND_HEADER, _ALL, _EXPORT, AIPREF),
        "no training of models that generate content; this crawl fetches for nothing else",
    ),
    Row(
        *(CONTENT_USAGE, "search=n", _ROBOTS_AND_HEADER, _NOTHING, _NOTHING, AIPREF),
        "about applications that direct users to the page",
    ),
    Row(
        *(AI_CRAWLER, DISALLOW, (ROBOTS_TXT,), _ALL, _EXPORT, RFC_9309),
        "not to be collected for training by another; the same is done here",
    ),
    Row(
        *(ROBOTS, "noindex", _PAGE, _EXPORT, _EXPORT, ROBOTS_META),
        "not to be in an index of pages for others, such as a data set; says nothing about copies and links",
    ),
    Row(*(ROBOTS, "nofollow", _PAGE, _EXPAND, _EXPAND, ROBOTS_META), "links are not to be followed; nothing else"),
    Row(*(ROBOTS, "none", _PAGE, _EXPAND | _EXPORT, _EXPAND | _EXPORT, ROBOTS_META), "noindex and nofollow"),
    Row(
        *(ROBOTS, "noarchive", _PAGE, _ENDS, _ENDS, ROBOTS_META),
        "no copy is to be kept; for Amazon and Bing also: no training",
    ),
    Row(*(ROBOTS, "noai", _PAGE, _ENDS, _EXPORT, NO_AI), "not to be in data sets for training"),
    Row(*(ROBOTS, "noimageai", _PAGE, _NOTHING, _NOTHING, NO_AI), "about images, which are not fetched"),
    Row(*(TDM_RESERVATION, "1", (*_PAGE, TDMREP), _ALL, _EXPORT, TDM_REP), "rights to text and data mining reserved"),
    Row(*(TDM_POLICY, ANY, (*_PAGE, TDMREP), _NOTHING, _NOTHING, TDM_REP), "the place of a licence; recorded"),
    Row(
        *(BLOCKED, "domain", (OPERATOR,), _EXPORT, _EXPORT, STEERING),
        "the operator of the crawl blocked the domain; earlier pages stay in the archive until a purge",
    ),
    Row(*(RSL, ANY, (ROBOTS_TXT, *_PAGE), _NOTHING, _NOTHING, RSL_1), "the place of terms; recorded, not read"),
)
"""All values that forbid something, or are recorded. Others, such as ``ai-train=yes``, are left out, because they
permit nothing."""
TABLE_DATE: Final = "2026-12-01"
"""Date of its last change."""
_ROWS: Final = {(row.signal, row.value): row for row in TABLE}


def row_of(signal: str, value: str) -> Row | None:
    """Return the row of a signal's value; None if the table lacks it."""
    return _ROWS.get((signal, value)) or _ROWS.get((signal, ANY))


class TrainingCrawler(NamedTuple):
    """A crawler whose documented purpose is to collect training data, or a name for that use alone."""

    name: str
    """Its product token in robots.txt."""
    source: str
    """The documentation of its purpose."""
    note: str = ""


_LISTED: Final = "https://github.com/ai-robots-txt/ai.robots.txt/blob/main/robots.json"
TRAINING_CRAWLERS_DATE: Final = "2026-11-23"
"""Date of the list's last review."""
TRAINING_CRAWLERS: Final = (
    TrainingCrawler("GPTBot", "https://developers.openai.com/api/docs/bots"),
    TrainingCrawler(
        "ClaudeBot",
        "https://support.claude.com/en/articles/8896518-does-anthropic-crawl-data-from-the-web-and-how-can-site-owners-"
        "block-the-crawler",
    ),
    TrainingCrawler("anthropic-ai", _LISTED, "no longer named by its operator, but still by sites"),
    TrainingCrawler(
        "Google-Extended",
        "https://developers.google.com/search/docs/crawling-indexing/google-common-crawlers#google-extended",
        "sends no requests",
    ),
    TrainingCrawler("Applebot-Extended", "https://support.apple.com/en-us/119829", "sends no requests"),
    TrainingCrawler("CCBot", "https://commoncrawl.org/ccbot", "its archive is the source of most training sets"),
    TrainingCrawler("meta-externalagent", "https://developers.facebook.com/docs/sharing/webmasters/web-crawlers/"),
    TrainingCrawler("Bytespider", _LISTED, "its operator documents nothing"),
    TrainingCrawler("AI2Bot", "https://allenai.org/crawler"),
    TrainingCrawler("Ai2Bot-Dolma", "https://allenai.org/crawler"),
)
"""Left out: crawlers for search or for answers to users (OAI-SearchBot, PerplexityBot, Claude-User), and those for many
purposes (Amazonbot, Applebot), because a site that blocks these may mean something else."""


def reference() -> str:
    """Return the tables of signals and of training crawlers in Markdown."""
    rows = [
        "|signal|value|where|fetch|archive|score, learn|expand|export|`OPT_OUT_FETCH = 1` forbids|",
        "|-|-|-|-|-|-|-|-|-|",
    ]
    for row in TABLE:
        before, after = (any((place in KNOWN_BEFORE) is known for place in row.places) for known in (True, False))
        fetch = Action.FETCH in row.forbids and before
        cells = [("no" if not after else "no, if known before") if fetch else "yes"]
        cells += ["no" if action in row.forbids else "yes" for action in Action if action is not Action.FETCH]
        fetched = ", ".join(f"{action.value}" for action in Action if action in row.forbids_fetched) or "-"
        rows.append(f"|`{row.signal}`|`{row.value}`|{', '.join(row.places)}|{'|'.join(cells)}|{fetched}|")
    rows += ["", "|signal|value|why|specification|", "|-|-|-|-|"]
    rows += [
        f"|`{row.signal}`|`{row.value}`|{row.why}|[{row.specification.title}]({row.specification.url})|"
        for row in TABLE
    ]
    versions = dict.fromkeys(f"{row.specification.title}: {row.specification.version}" for row in TABLE)
    rows += ["", "Versions by which they are read:", "", *(f"- {version}" for version in versions)]
    rows += ["", f"Training crawlers, as of {TRAINING_CRAWLERS_DATE}:", "", "|name and source|note|", "|-|-|"]
    rows += [f"|[`{one.name}`]({one.source})|{one.note}|" for one in TRAINING_CRAWLERS]
    return "\n".join(rows) + "\n"

"""The statistics that a crawl reports, under ``crawl4llm/`` in Scrapy's stats: every key and its meaning.

:mod:`crawl4llm.parts` adds the figures of parts.
"""

from __future__ import annotations

PREFIX = "crawl4llm/"

KEYS: dict[str, str] = {
    "pages/crawled": "pages taken from the frontier, archived and logged (P of Algorithm 1)",
    "pages/visited": "documents ever discovered, seeds included (V of Algorithm 1)",
    "pages/fetched": "documents looked up to get there; a policy that looks ahead fetches all it visits. Live: "
    "requests for documents that went out, redirects and retries included",
    "requests/<purpose>": "live: requests that went out, by purpose: `document`, `redirect`, `retry`, "
    "`robots.txt`, `tdmrep.json`, `sitemap` or `other`; all together are what servers saw",
    "unsent/<reason>": "live: requests that were not sent, because the look-up of the host or the connection failed",
    "pages/no_text": "scored pages without any text; their influence score is 0",
    "pages/unrated": "crawled pages whose influence score could not be computed; the log has null",
    "unscored/<reason>": "add-on: pages without an influence score, by reason",
    "frontier/queued": "documents that wait in the frontier, without those of parked owners",
    "frontier/leased": "documents taken from the frontier and not yet done",
    "frontier/parked": "documents whose owners are parked, in a live crawl, and those of `parked/budget` and "
    "`parked/unanswered`",
    "parked/unanswered": "live: documents that wait because their sites have not answered yet",
    "owners/parked": "live: owners that are parked, because they ask for a Crawl-delay above CRAWL_DELAY_CAP",
    "given_up/<reason>": "live: sites that were given up; for `dns` hosts",
    "frontier/reranked": "new scores for documents in the frontier, from a policy that ranks them again",
    "frontier/retried": "documents that were requeued after a failed attempt",
    "failed/<reason>": "failed documents, by [reason](troubleshooting.md#failed-documents)",
    "dropped/<reason>": "dropped documents, by reason",
    "redirected/<reason>": "documents that ended with a redirect to another owner, by the fate of its target",
    "iterations": "batches finished (batch order)",
    "influence/mean": "mean influence score of the crawled pages that have one",
    "scores/cached": "influence scores that SCORE_CACHE had, since the crawl was begun or resumed",
    "scores/computed": "influence scores that SCORE_CACHE did not have",
    "links/seen": "links on crawled pages, and in sitemaps",
    "links/nofollow": "live: links on pages whose head says nofollow or none; neither followed nor in links/seen",
    "links/too_deep": "links to documents that are more links from a seed than DEPTH_LIMIT",
    "links/url_too_long": "links to URLs of more characters than URLLENGTH_LIMIT",
    "links/sitemap": "live: links in sitemaps (SITEMAPS)",
    "links/new": "links to a document not visited before",
    "links/without_key": "links to nothing in the corpus: it gives them no id, or the target filter removes it",
    "sitemaps/read": "live: sitemaps that were read",
    "sitemaps/failed": "live: sitemaps that could not be read",
    "sitemaps/passed_over": "live: sitemaps that were not requested: many waited, or they are out of scope",
    "simulation/seconds": "virtual seconds that the fetches took, where owners wait (SIMULATION_OWNER_DELAY)",
    "seeds/given": "seeds that were given or drawn",
    "seeds/duplicate": "seeds given more than once",
    "seeds/malformed": "lines of the seeds file that are neither an id of the corpus nor a URL",
    "seeds/unknown": "seeds that the corpus does not hold",
    "redirects/followed": "redirects followed within a fetch; their targets are visited, and part of what led to them",
    "storage/puts": "objects that this worker has put, or found there (STORAGE)",
    "storage/bytes": "bytes of those it has put",
    "storage/gets": "objects and lists that it has read",
    "late": "ignored answers for a lease that had ended",
    "errors": "unanticipated errors; errors.log has each in full (add-on: the log)",
}


def reference() -> str:
    """Return the reference of statistics, as a Markdown table."""
    rows = "".join(f"|`{PREFIX}{key}`|{meaning}|\n" for key, meaning in KEYS.items())
    return f"|key|meaning|\n|-|-|\n{rows}"

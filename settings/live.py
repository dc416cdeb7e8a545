"""Live: the real web, politely (SCRAPY_PROJECT=live scrapy crawl influence -a seeds=FILE -s SCORER_MODEL=PATH)."""

from .base import *  # noqa: F403

# What fetches politely, archives, and is steered. Components of your own go into EXTENSIONS, DOWNLOADER_MIDDLEWARES and
# so on, beside these; None switches one of them off: EXTENSIONS = {"crawl4llm.live.sitemaps.Sitemaps": None}.
ADDONS = {"crawl4llm.engine.components.LiveComponents": 0}

# Whom the webmaster of a site meets. Refused as it stands: say who you are and how to reach you, by
# USER_AGENT = "our-crawler (+https://example.org/crawler)"; `crawl4llm docs webmasters` is a draft of that page.
USER_AGENT = "crawl4llm"

# Scored by what is known before the fetch: what was learnt from the pages crawled so far (crawl4llm docs policies).
URL_POLICY = "link"

# What by its URL leads into a trap is not asked for (crawl4llm docs traps).
URL_TRAPS = "cgi_bin,repeated_path,calendar,session_id,deep_path,many_parameters"

# Nor is what wikis, blogs, forums and other software make of their own pages: edit forms, old revisions, feeds, sort
# orders (crawl4llm docs site-rules).
SITE_RULES = "wikis,blogs,forums,shops,trackers,repositories,mail,docs,generators"

# Pages whose text is like an earlier one's are counted, and worth nothing to the policy; their links may lead to new
# ones all the same.
NEAR_DUPLICATES = "follow"
NEAR_DUPLICATES_WORTHLESS = True

# Nor is what has a parameter or path segment that brought its owner's pages a second time, or pages worth nothing.
URL_ALIAS_PAIRS = 5
URL_WORTHLESS_PAGES = 20

# Trafilatura's text of a page, or resiliparse's if that is no good. The model's card may name another extractor, which
# a line in the log says; take this out, and the card's is taken. Navigation and lists of links are worth less.
TEXT_EXTRACTOR = "both"
LOWER_LEFT_OVERS = True

# The best document next whose owner may be asked: one request at a time an owner, and five seconds from the end of one
# to the next, or more (crawl4llm docs politeness). No more of the whole web than this machine scores. Owners that never
# answer keep their places for DOWNLOAD_TIMEOUT, so there are many; unanticipated errors in a row are to be more than
# that.
CRAWL_BATCH_SIZE = 0
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS = 256
CRAWL_MAX_ERRORS = 1000
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 5.0
DOWNLOAD_DELAY_JITTER = 0
DOWNLOAD_TIMEOUT = 60
DOWNLOAD_WARNSIZE = 0

# What is no page by the ending of its name is not asked for: the answer would be dropped as `not_html`.
SCOPE_SKIPPED_TYPES = "images,media,archives,documents,programs,assets,feeds"

# What links and pages say of themselves (crawl4llm docs scope): links that their own site, or their maker, does not
# vouch for are not followed; pages that ask to be kept out of indexes are no pages of the N; of translations those are
# crawled that Accept-Language, below, asks for.
SKIPPED_LINK_TYPES = "nofollow,ugc,sponsored"
NOINDEX = "drop"
CRAWL_LANGUAGES = "en"

# An owner, or a URL prefix, that has given nothing good in that many fetches gets no more requests (crawl4llm docs
# operating).
URL_BUDGET = 10

# With JOBDIR: what a commit changes of the store is in memory until then, some 70 KB a page.
COMMIT_INTERVAL_PAGES = 250

# A host whose certificate is not valid fails as `certificate`. Off: it is crawled all the same.
DOWNLOAD_VERIFY_CERTIFICATES = True

# Bodies are archived as they are sent, so they are asked for in codings that all readers of archives undo: few know
# Zstandard, and warcio, where it finds the package brotli, breaks off at a body in that coding (its issue 73).
DEFAULT_REQUEST_HEADERS = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language": "en",
    "Accept-Encoding": "gzip, deflate",
}

# A page is what a stranger gets to see. A refresh in its HTML is a link like others.
COOKIES_ENABLED = False
METAREFRESH_ENABLED = False

# What pages lead to on this machine and in its network is nobody's to read: NETWORK_ALLOWED says which addresses that
# are not of the public Internet are asked. A proxy that the environment names would connect for us, to whatever it may.
HTTPPROXY_ENABLED = False
DNS_TIMEOUT = 20

# Scrapy starts so many tasks for each response; the spider yields nothing that would need them.
CONCURRENT_ITEMS = 1
REFERRER_POLICY = "no-referrer"

# What cannot be fetched is counted, and is in failures.jsonl.
RETRY_GIVE_UP_LOG_LEVEL = "DEBUG"

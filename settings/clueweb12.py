"""ClueWeb12: live, by that crawl's rules (SCRAPY_PROJECT=clueweb12); `crawl4llm docs scope` has them row by row."""

from .live import *  # noqa: F403

# "The crawler skipped multimedia files, for example, flash images, audio and video files as well as compressed files
# (e.g. zip, tar, gz, sit, hqx)." Images it captured apart from the dataset; here they are skipped too.
SCOPE_SKIPPED_TYPES = "images,media,archives"

# "The crawler also truncated any file that was larger than 10MB in size." DOWNLOAD_MAXSIZE is where a body is cut that
# was compressed.
BODY_LIMIT = 10_000_000
DOWNLOAD_MAXSIZE = 10_000_000

# Files of 5.54 TB / 33,447, "about 1 GB of space when uncompressed", compressed with gzip.
WARC_MAX_BYTES = 165_000_000

# Of what links and pages say of themselves its description has no word.
SKIPPED_LINK_TYPES = ""
NOINDEX = "count"
CRAWL_LANGUAGES = ""

# "A blacklist was used to avoid sites that are reported to distribute pornography, malware [...] The blacklist also
# included a small number (less than a dozen) of sites that opted out of the crawl." It was sold by a service that is
# no more: give lists of your own, -s BLOCKLISTS=malware.txt,phishing.txt,filesharing.txt,opted-out.txt

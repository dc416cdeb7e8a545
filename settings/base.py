"""Settings of both profiles. `crawl4llm docs settings` has every setting of crawl4llm with its default."""

BOT_NAME = "crawl4llm"
SPIDER_MODULES = ["crawl4llm.spiders"]
COMMANDS_MODULE = "crawl4llm.commands"

# Algorithm 1 (Craw4LLM): n pages an iteration, N in all.
CRAWL_BATCH_SIZE = 100
CRAWL_MAX_PAGES = 4000

# Larger pages are dropped, downloaded or not: they take a multiple of it in memory.
DOWNLOAD_MAXSIZE = 10_000_000

# No ports are opened on the user's machine.
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False

# The figures go to stats.json and the summary instead of the log.
STATS_DUMP = False
LOG_LEVEL = "INFO"

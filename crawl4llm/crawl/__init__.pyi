from .commits import (
    CRAWL as CRAWL,
    Commits as Commits,
    CrawlStore as CrawlStore,
    add_purged as add_purged,
    add_seeds as add_seeds,
    move_output as move_output,
    set_seeds as set_seeds,
)
from .control import (
    CONTROL as CONTROL,
    Control as Control,
    InjectFolder as InjectFolder,
    blocked_around as blocked_around,
    checked_control as checked_control,
    publish_blocked as publish_blocked,
    read_blocked as read_blocked,
    read_control as read_control,
    set_blocked as set_blocked,
    write_blocked as write_blocked,
)
from .counting import (
    REDIRECTS as REDIRECTS,
    UNCOUNTED as UNCOUNTED,
    Balance as Balance,
    Counters as Counters,
    balance as balance,
    ended_documents as ended_documents,
)
from .crawl import Crawl as Crawl
from .driven import Driven as Driven
from .ends import (
    BAD_INPUT as BAD_INPUT,
    FRONTIER_EMPTY as FRONTIER_EMPTY,
    INTERNAL_ERROR as INTERNAL_ERROR,
    LIMITS as LIMITS,
    MAX_PAGES as MAX_PAGES,
    ONLY_PARKED as ONLY_PARKED,
    TOO_MANY_ERRORS as TOO_MANY_ERRORS,
    UNANSWERED as UNANSWERED,
    is_done as is_done,
)
from .fetched_web import FetchedWeb as FetchedWeb, LiveCorpus as LiveCorpus
from .job import Job as Job, fixed_settings as fixed_settings
from .jobdir import JOB as JOB, REQUESTS as REQUESTS, ROBOTS as ROBOTS, JobDir as JobDir, find_output as find_output
from .opening import open_crawl as open_crawl
from .page_writer import (
    CrawlLog as CrawlLog,
    PageWriter as PageWriter,
    RatePages as RatePages,
    open_archive as open_archive,
    warcinfo_fields as warcinfo_fields,
)
from .reorder_buffer import (
    Found as Found,
    Hop as Hop,
    Injected as Injected,
    attach_page as attach_page,
    attach_pages as attach_pages,
    is_for_several as is_for_several,
    is_leased as is_leased,
    lease_of as lease_of,
    leased as leased,
    leased_together as leased_together,
    leases_of as leases_of,
    page_of as page_of,
    pages_of as pages_of,
)
from .request_files import RequestFiles as RequestFiles, RequestLines as RequestLines, days as days, lines as lines
from .scope import Limits as Limits, Scope as Scope
from .seeds import (
    Seeds as Seeds,
    find_document as find_document,
    not_held as not_held,
    read_seeds as read_seeds,
    sample_seeds as sample_seeds,
)
from .sited_frontier import SitedFrontier as SitedFrontier
from .stored_crawl import StoredCrawl as StoredCrawl
from .turns import (
    Clock as Clock,
    RealClock as RealClock,
    Turns as Turns,
    may_try as may_try,
    owner_of_lease as owner_of_lease,
    patience_of as patience_of,
)
from .web import Web as Web, crawl_on as crawl_on, load_rater as load_rater, load_scorers as load_scorers

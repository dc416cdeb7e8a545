from .centrality import page_ranks as page_ranks
from .clueweb22.records import FULL_ID_POSITION as FULL_ID_POSITION
from .demo import HOSTS as HOSTS, PAGES as PAGES, build_demo as build_demo, ensure_demo as ensure_demo
from .indexes import IndexSummary as IndexSummary
from .opening import (
    build_corpus as build_corpus,
    data_dir as data_dir,
    index_corpus as index_corpus,
    index_folder as index_folder,
    is_clueweb22 as is_clueweb22,
    largest_page as largest_page,
    open_corpus as open_corpus,
    rank_pages as rank_pages,
)
from .warcs.corpus import WarcCorpus as WarcCorpus
from .warcs.files import list_files as list_files
from .warcs.index import (
    FAILED as FAILED,
    HTML as HTML,
    REVISITED as REVISITED,
    Document as Document,
    WarcIndex as WarcIndex,
)
from .warcs.index_build import (
    build_warc_index as build_warc_index,
    is_current as is_current,
    opt_outs_in as opt_outs_in,
    points_path as points_path,
)
from .warcs.scan import (
    DAMAGED as DAMAGED,
    NO_LENGTH as NO_LENGTH,
    NO_URL as NO_URL,
    NOT_HTML as NOT_HTML,
    PAGE as PAGE,
    REVISIT as REVISIT,
    UNTYPED as UNTYPED,
    date_as_number as date_as_number,
    date_of as date_of,
    read_site_file as read_site_file,
)
from .web import open_rater as open_rater, open_scores as open_scores

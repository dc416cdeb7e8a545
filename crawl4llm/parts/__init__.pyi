from .blocklists.work import (
    NAME as NAME,
    Blocklists as Blocklists,
    BlocklistsPart as BlocklistsPart,
    file_stamp as file_stamp,
    publish as publish,
    published as published,
)
from .budgets.accounts import LISTED as LISTED, Budgets as Budgets
from .budgets.scopes import scopes_beside as scopes_beside, scopes_of as scopes_of
from .known_links.file import (
    CLUEWEB22 as CLUEWEB22,
    CODE as CODE,
    PAGES as PAGES,
    KnownLinks as KnownLinks,
    key_fingerprint as key_fingerprint,
    links_kind as links_kind,
    links_record as links_record,
    scheme_of as scheme_of,
    score_bits as score_bits,
)
from .known_texts.work import (
    BITS as BITS,
    DIGESTS as DIGESTS,
    RECORD as RECORD,
    TEXT_SCHEME as TEXT_SCHEME,
    TEXTS as TEXTS,
    KnownTexts as KnownTexts,
    band_name as band_name,
    record_of as record_of,
)
from .known_urls.work import (
    URL_SCHEME as URL_SCHEME,
    URLS as URLS,
    is_web_url as is_web_url,
    listed_urls as listed_urls,
    url_fingerprint as url_fingerprint,
)
from .near_duplicates.work import NearDuplicates as NearDuplicates
from .opened import Parts as Parts
from .order import ENDS as ENDS, ORDER as ORDER, Settings as Settings, load_part as load_part, open_parts as open_parts
from .part import (
    ALONE as ALONE,
    EVERYWHERE as EVERYWHERE,
    Needs as Needs,
    Part as Part,
    Rated as Rated,
    Refusal as Refusal,
)
from .site_rules.reference import site_rules_reference as site_rules_reference

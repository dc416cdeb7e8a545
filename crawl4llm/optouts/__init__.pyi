from . import table as table
from .heard import (
    FILES as FILES,
    LARGEST_FILE as LARGEST_FILE,
    Heard as Heard,
    OfDomain as OfDomain,
    OfPage as OfPage,
    OfSite as OfSite,
    OptOut as OptOut,
    of_site as of_site,
)
from .html_meta import (
    said_in_html as said_in_html,
    said_in_metas as said_in_metas,
    said_in_tree as said_in_tree,
)
from .robots_rules import (
    ALLOW_ALL as ALLOW_ALL,
    LIMIT as LIMIT,
    Rules as Rules,
    parse as parse,
    product_token as product_token,
    text_of as text_of,
)
from .said import (
    UNKNOWN as UNKNOWN,
    Said as Said,
    Verdict as Verdict,
    as_text as as_text,
    decide as decide,
    from_text as from_text,
    is_known as is_known,
    is_noindex as is_noindex,
    reason_against_training as reason_against_training,
)
from .table import ROBOTS_TXT as ROBOTS_TXT, TABLE_DATE as TABLE_DATE, TDMREP as TDMREP, Action as Action
from .tdmrep import NOTHING_RESERVED as NOTHING_RESERVED, PATH as PATH, TdmRules as TdmRules
from .values import FIELDS as FIELDS, said_in_head as said_in_head

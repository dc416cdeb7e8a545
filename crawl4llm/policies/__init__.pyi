from ._features import places_of as places_of
from ._ordering import make_policy as make_policy
from ._policy import (
    COUNTED as COUNTED,
    EACH as EACH,
    NO as NO,
    NOT_OURS as NOT_OURS,
    SCORER_PREFIX as SCORER_PREFIX,
    BasePolicy as BasePolicy,
    Candidate as Candidate,
    CrawledPage as CrawledPage,
    Pieces as Pieces,
    Policy as Policy,
    PolicyOptions as PolicyOptions,
    Rating as Rating,
    known_policies as known_policies,
    load_policy as load_policy,
    overriding as overriding,
)
from ._seen_links import targets_of as targets_of
from .bound import bound_text as bound_text

from . import (
    complaints as complaints,
    journal as journal,
    objects as objects,
    opening as opening,
    storage as storage,
    worker as worker,
)
from .archive import Lines as Lines, index_name as index_name
from .complaints import Controls as Controls, write_log as write_log
from .history import Batch as Batch, Ended as Ended, History as History, News as News, news_of as news_of
from .liveness import DRAIN as DRAIN, STOP as STOP, ValkeyLiveness as ValkeyLiveness
from .opening import check_lease as check_lease, divided as divided, refuse_settings as refuse_settings
from .soundness import (
    BatchesSoundness as BatchesSoundness,
    CheckedCommit as CheckedCommit,
    CommitsSoundness as CommitsSoundness,
)
from .stores import FINGERPRINT as FINGERPRINT

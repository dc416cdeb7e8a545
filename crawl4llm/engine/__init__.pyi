from . import settings as settings
from .dry_run import DryRun as DryRun
from .logs import log_in_json as log_in_json
from .profiles import (
    LIVE as LIVE,
    SIMULATION as SIMULATION,
    profile_for as profile_for,
    with_addons as with_addons,
)
from .run import Run as Run
from .settings import (
    asks_for_log as asks_for_log,
    check_mode as check_mode,
    check_values as check_values,
    misspelt as misspelt,
    take_over as take_over,
    unheeded as unheeded,
)
from .software import SOFTWARE as SOFTWARE
from .start_checks import (
    JOB as JOB,
    Faults as Faults,
    check_disk as check_disk,
    check_start as check_start,
    take_extractor as take_extractor,
)
from .summary import (
    Again as Again,
    begun_again as begun_again,
    mostly_failed as mostly_failed,
    opening as opening,
    summary as summary,
)
from .webs import OURS as OURS, prepare as prepare, web_class as web_class

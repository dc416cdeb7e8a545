from . import holds as holds, plain as plain, store as store, visited as visited
from .aside import (
    TABLE as TABLE,
    Aside as Aside,
    MemoryAside as MemoryAside,
    StoredAside as StoredAside,
    place_of as place_of,
)
from .composed import FRONTIER_STATE as FRONTIER_STATE, LEASES as LEASES, StoredFrontier as StoredFrontier
from .fingerprints import FingerprintRuns as FingerprintRuns, fingerprint as fingerprint
from .frontier import (
    IMPATIENT as IMPATIENT,
    MOST_HOPS as MOST_HOPS,
    UNREQUESTED as UNREQUESTED,
    Caps as Caps,
    Entry as Entry,
    Evicted as Evicted,
    Frontier as Frontier,
    FrontierOwners as FrontierOwners,
    Lease as Lease,
    Outcome as Outcome,
    OwnerCounts as OwnerCounts,
    OwnerFrontier as OwnerFrontier,
    Owners as Owners,
    Patience as Patience,
)
from .holds import Hold as Hold, hold_of as hold_of
from .memory import MemoryVisited as MemoryVisited, score_of as score_of
from .mixed import MOST_CELLS as MOST_CELLS, Shares as Shares
from .opening import (
    memory_frontier as memory_frontier,
    open_frontier as open_frontier,
    stored_frontier as stored_frontier,
)
from .owners import OwnerIndex as OwnerIndex
from .plain import MOST_FRESH as MOST_FRESH
from .runs import decode as decode, unpack as unpack
from .store import (
    NAME as NAME,
    TABLES as TABLES,
    Store as Store,
    StoreError as StoreError,
    put_in_place as put_in_place,
)
from .stored import CURRENT as CURRENT, decode_stored as decode_stored, is_document as is_document
from .visited import VISITED_STATE as VISITED_STATE, DurableVisited as DurableVisited, VisitedSet as VisitedSet

from . import (
    capturing as capturing,
    fetching as fetching,
    opt_outs as opt_outs,
    places as places,
    request_log as request_log,
    stopping as stopping,
    verdicts as verdicts,
)
from .addresses import Rules as Rules
from .capturing import (
    Capturing as Capturing,
    captures_of as captures_of,
    forget_captures as forget_captures,
    go_on as go_on,
    hop_of as hop_of,
)
from .identity import (
    check_identity as check_identity,
    contact_in as contact_in,
    crawler_name as crawler_name,
    user_agent as user_agent,
    with_contact as with_contact,
)
from .reachable import check_network as check_network, fault_of_page as fault_of_page
from .verdicts import verdict as verdict
from .web import from_the_network as from_the_network
from .wire import WireHandler as WireHandler, known_status as known_status

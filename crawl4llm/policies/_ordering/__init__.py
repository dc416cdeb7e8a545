"""From a policy to the order of the frontier: settings that change what any policy's scores mean, as wrappers of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawl4llm.policies import Policy, load_policy
from crawl4llm.policies._ordering.ascending import Ascending
from crawl4llm.policies._ordering.hot_queue import HotQueue

if TYPE_CHECKING:
    from crawl4llm.options import Options
    from crawl4llm.scoring.rating import PageRater
    from crawl4llm.scoring.workers import PageWorkers


def make_policy(workers: PageWorkers[PageRater], options: Options) -> Policy:
    """The policy URL_POLICY in the ORDER given, behind the hot queue of HOT_QUEUE_TOPIC if there is one.

    Raises InputError.
    """
    policy: Policy = load_policy(options.url_policy)(workers, options)
    if options.order == "asc":
        policy = Ascending(policy)
    if options.hot_queue_topic:
        policy = HotQueue(policy, workers, options.hot_queue_topic)
    return policy

"""From a policy to the order of the frontier: makes the policy of a crawl by its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawl4llm.policies._policy import Policy, PolicyOptions, load_policy
from crawl4llm.policies._wrappers import Ascending, HotQueue

if TYPE_CHECKING:
    from crawl4llm.scoring.rating import PageRater
    from crawl4llm.scoring.workers import PageWorkers


def make_policy(workers: PageWorkers[PageRater], options: PolicyOptions) -> Policy:
    """Return the policy URL_POLICY in the ORDER given, behind the hot queue of HOT_QUEUE_TOPIC if there is one, and
    with KNOWN_TEXTS, with what it learns of where new ones are. Raises InputError."""
    policy: Policy = load_policy(options.url_policy)(workers, options)
    if options.known_texts is not None:
        from crawl4llm.policies._novelty import Novelty  # few crawls look for it, and it needs the learner's module

        policy = Novelty(policy)
    if options.order == "asc":
        policy = Ascending(policy)
    if options.hot_queue_topic:
        policy = HotQueue(policy, workers, options.hot_queue_topic)
    return policy

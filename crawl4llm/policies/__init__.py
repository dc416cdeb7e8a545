"""Policies: Score_URL of Algorithm 1 (Craw4LLM, section 2), one module each.

A policy's name is its module's name; the module holds one class called ``Policy``. A new file here is a new policy:
it is found by itself, and the contract tests run over it. Modules with a leading underscore are no policies:
``_policy`` has the class of policies, and their settings;
``_ordering`` makes the policy of a crawl and wraps it (ORDER, HOT_QUEUE_TOPIC); ``_novelty`` does with KNOWN_TEXTS;
``_classes`` guesses the classes of documents (MIXTURE);
``_scorer_policy`` looks ahead by any scorer; ``_seen_links`` and ``_seen_graph`` know the links seen so far;
``_features`` is what ``link`` learns from, ``_learning`` what it learns with; ``_means`` are means of influence scores.
"""

from crawl4llm.policies._policy import COUNTED as COUNTED
from crawl4llm.policies._policy import EACH as EACH
from crawl4llm.policies._policy import NO as NO
from crawl4llm.policies._policy import NOT_OURS as NOT_OURS
from crawl4llm.policies._policy import SCORER_PREFIX as SCORER_PREFIX
from crawl4llm.policies._policy import BasePolicy as BasePolicy
from crawl4llm.policies._policy import Candidate as Candidate
from crawl4llm.policies._policy import CrawledPage as CrawledPage
from crawl4llm.policies._policy import Pieces as Pieces
from crawl4llm.policies._policy import Policy as Policy
from crawl4llm.policies._policy import PolicyOptions as PolicyOptions
from crawl4llm.policies._policy import Rating as Rating
from crawl4llm.policies._policy import known_policies as known_policies
from crawl4llm.policies._policy import load_policy as load_policy
from crawl4llm.policies._policy import overriding as overriding

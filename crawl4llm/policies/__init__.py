"""Policies: Score_URL of Algorithm 1 (Craw4LLM, section 2), one module each.

A policy's name is its module's name; the module holds one class called ``Policy``. A new file here is a new policy:
it is found by itself, and the contract tests run over it. Modules with a leading underscore are no policies:
``_policy`` has the class of policies, and their settings;
``_ordering`` makes the policy of a crawl and wraps it (ORDER, HOT_QUEUE_TOPIC); ``_novelty`` does with KNOWN_TEXTS,
by the estimates of ``_new_shares``;
``_scorer_policy`` looks ahead by any scorer; ``_seen_links`` and ``_seen_graph`` know the links seen so far;
``_features`` is what ``link`` learns from, ``_learning`` what it learns with; ``_means`` are means of influence scores;
``_values`` are numbers by name from a file.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

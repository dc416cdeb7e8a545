"""Crawls a small web by each policy and prints a digest of each: run in a process of its own by test_policies.py."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

from policy_helpers import SEEDS, new_crawl, random_web, variants

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, settings) in enumerate(variants(Path(sys.argv[1])).items()):
            driven = new_crawl(random_web(), Path(folder, str(number)), crawl_batch_size=2, **settings).run(*SEEDS)
            driven.close()
            result = json.dumps(driven.lines).encode() + driven.crawl.policy.save()
            print(name, hashlib.sha256(result).hexdigest())

"""Crawls of a small web by each policy, and a digest of each: test_policies.py makes them here and in a new process."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

from policy_helpers import SEEDS, new_crawl, random_web, variants


def digests(ranks: Path) -> list[str]:
    """Return the name of each policy, and the digest of a crawl by it; ``ranks`` are for the policy ``harmonic``."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, settings) in enumerate(variants(ranks).items()):
            driven = new_crawl(random_web(), Path(folder, str(number)), crawl_batch_size=2, **settings).run(*SEEDS)
            driven.close()
            result = json.dumps(driven.lines).encode() + driven.crawl.policy.save()
            found.append(f"{name} {hashlib.sha256(result).hexdigest()}")
    return found


if __name__ == "__main__":
    print(*digests(Path(sys.argv[1])), sep="\n")

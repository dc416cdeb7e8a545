"""A part: fetches HOST_QUOTA documents of each host at most, and sets the others aside."""

from collections import Counter
from typing import ClassVar

from crawl4llm.base.domains import ascii_host
from crawl4llm.parts import Part


class HostQuota(Part):
    """Fetches HOST_QUOTA documents of each host at most."""

    name = "host_quota"
    SETTINGS: ClassVar = {"HOST_QUOTA": 100}
    ENDS: ClassVar = {"host_quotas": "all that is left is of hosts that have given HOST_QUOTA documents"}
    spent = "host_quotas"

    def begin(self):
        self.fetched = Counter()

    def lease(self, entry):
        host = ascii_host(entry.url or entry.key)
        if self.fetched[host] >= self.options.own["HOST_QUOTA"]:
            return f"host_quota:{host}"
        self.fetched[host] += 1
        return None

    def ended(self, entry, outcome, *, asked):
        if not asked:
            self.fetched[ascii_host(entry.url or entry.key)] -= 1

    def lines(self, figures):
        yield f"  host quotas      {len(self.fetched):,} hosts"

    def save(self):
        return dict(self.fetched)

    def load(self, state):
        self.fetched.update(state)

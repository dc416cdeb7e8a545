"""The durable side of a crawl: opened from its JOBDIR, compared with the settings, begun or resumed."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crawl4llm.base.errors import InputError, NothingToDo
from crawl4llm.base.files import sync_path
from crawl4llm.base.output_dir import ClaimedOutputDir
from crawl4llm.base.run_folder import SETTINGS, write_json
from crawl4llm.base.terminal import harmless, wants_bar
from crawl4llm.crawl.answer_spool import AnswerSpool
from crawl4llm.crawl.commits import Commits, CrawlStore, Kept, State, read_state
from crawl4llm.crawl.counting import counted
from crawl4llm.crawl.jobdir import DIGESTS, JOB, JobDir, find_output
from crawl4llm.crawl.page_writer import CrawlLog
from crawl4llm.crawl.store_check import ID, check_store
from crawl4llm.crawl.turns import Clock, patience_of
from crawl4llm.frontier import LEASES, Caps, Store, StoredAside, StoredFrontier, open_frontier
from crawl4llm.options import Options
from crawl4llm.policies import Policy
from crawl4llm.warc import Archive

if TYPE_CHECKING:
    from crawl4llm.crawl.crawl import Crawl
    from crawl4llm.frontier import Shares


class Job:
    """A JOBDIR in use. After :meth:`settle` and :meth:`open`, in this order, all its attributes are set."""

    store: CrawlStore
    by_owners: StoredFrontier | None
    """The frontier, if it is one of owners."""
    state: State
    output: Path
    crawl_id: str

    def __init__(self, path: Path, options: Options, *, look: bool = False) -> None:
        """Lock it, and check the crawl in it; with ``look``, without a lock or any change. Raises InputError."""
        self._options = options
        with ExitStack() as opened:
            self._dir = JobDir(path, lock=not look, may_begin=look)
            opened.callback(self._dir.close)
            if look:
                self._dir.refuse_in_use()
            self.pages = self._leased = 0
            """Pages crawled so far."""
            if self._dir.job is not None:
                check_store(self._dir.store_path, self._dir.job["crawl_id"])
                self._dir.check_id()
                self.pages, self._leased = self._stored_counts()
            self._opened = opened.pop_all()

    def settle(self, crawl_id: str, identity: Mapping[str, Any]) -> None:
        """Begin this crawl, or check that it is the one begun before. Raises InputError that names the differences, and
        NothingToDo if it has more pages than CRAWL_MAX_PAGES."""
        if not self.is_new:
            self.check(identity)
            return
        self.crawl_id = crawl_id
        self._opened.push(self._forget_if_refused)
        self.output = self._opened.enter_context(ClaimedOutputDir(self._options.output_dir))
        sync_path(self.output.parent)
        # The output is trusted because it bears the crawl's id, so it does before JOBDIR says where it is.
        write_json(self.output / SETTINGS, {"crawl_id": crawl_id}, fsync=True)
        digests = {name: identity.get(name) for name in DIGESTS}
        output, settings = str(self.output.resolve()), fixed_settings(self._options)
        try:
            with closing(Store(self._dir.store_path, fsync=self._options.commit_fsync)) as store:
                store.put("state", ID, crawl_id.encode())
                store.commit()
            self._dir.begin({"crawl_id": crawl_id, "output": output, "digests": digests, "settings": settings})
        except InputError:
            self._dir.clear()  # half a store would be taken for one that was damaged
            raise

    def check(self, identity: Mapping[str, Any]) -> None:
        """Check that the crawl, if one was begun, is that of ``identity``. Raises the errors of :meth:`settle`."""
        job = self._dir.job
        if job is None:
            return
        given = {meaning: identity.get(name) for name, meaning in DIGESTS.items()} | fixed_settings(self._options)
        begun = {DIGESTS[name]: digest for name, digest in job["digests"].items()} | job["settings"]
        different = [
            f"{harmless(name)} was {value!r:.300}, is {given.get(name)!r:.300}"
            for name, value in begun.items()
            if value != given.get(name)
        ]
        if different:
            raise InputError(
                f"JOBDIR {self._dir.path} was begun with other settings: {'; '.join(different)}; give the same, or "
                "another JOBDIR"
            )
        self.crawl_id = job["crawl_id"]
        self.output = find_output(self._dir.path, job, self._options.output_dir)
        if self.pages + self._leased > self._options.crawl_max_pages:
            more = f" and is at {self._leased:,} more, which come first" if self._leased else ""
            raise NothingToDo(
                f"The crawl in JOBDIR {self._dir.path} has {self.pages:,} pages{more}; CRAWL_MAX_PAGES is "
                f"{self._options.crawl_max_pages:,}, which is less: there is nothing to do, and nothing was changed"
            )

    def differing(self, digests: Mapping[str, str]) -> list[str]:
        """Return what of some inputs is not that of the crawl that was begun, as the user gives it; nothing if none
        was."""
        begun = {} if self._dir.job is None else self._dir.job["digests"]
        return [DIGESTS[name] for name, digest in digests.items() if begun.get(name, digest) != digest]

    @property
    def is_new(self) -> bool:
        """True if the crawl has not begun."""
        return self._dir.job is None

    def open(self, *, reranks: bool, clock: Clock | None = None, shares: Shares | None = None) -> None:
        """Open frontier and visited set at the last commit: a frontier of owners with a ``clock``, one of classes with
        ``shares``. Processes that are forked later must not use them."""
        options = self._options
        caps = Caps(options.frontier_max_urls or None, options.frontier_max_urls_per_host or None)
        self._tables = tables = Store(self._dir.store_path, fsync=options.commit_fsync)
        self._opened.callback(tables.close)
        self.state = read_state(tables)
        times: dict[str, Any] = {} if clock is None else {"patience": patience_of(options, clock), "clock": clock.now}
        by_owners = clock is not None
        frontier = open_frontier(tables, caps, by_owners=by_owners, shares=shares, reranks=reranks, **times)
        self.by_owners = frontier if by_owners else None
        progress = wants_bar(options.progress_bar)
        self.store = CrawlStore(tables, frontier, self._dir.filter_path, options, progress=progress)
        self._opened.callback(self.store.visited.close)

    def aside(self) -> StoredAside:
        """Return the documents set aside."""
        return StoredAside(self._tables)

    def take_up(self, policy: Policy, *others: Kept | None) -> None:
        """Restore the policy at the last commit, and keep its state and that of ``others`` in the store. Raises
        InputError."""
        self.store.keep(policy, *others)
        if self.state.crawl is not None:
            try:
                policy.load(self.state.policy)
            except (ArithmeticError, LookupError, AttributeError, RecursionError, TypeError, ValueError, struct.error):
                raise self._tables.damaged(f"the state of its policy is not that of {policy.name}") from None

    def go_on(self, crawl: Crawl) -> None:
        """Restore a crawl at the last commit. Raises InputError."""
        assert self.state.crawl is not None
        try:
            crawl.load(self.state.crawl, self.store.frontier.leases())
        except (ArithmeticError, LookupError, AttributeError, TypeError, ValueError):
            raise self._tables.damaged("its state is not that of this crawl and its parts") from None

    def answers(self) -> AnswerSpool:
        """Return the spool for answers that cannot be merged yet. Raises InputError."""
        spool = AnswerSpool(self._dir.answers_path)
        self._opened.callback(spool.close)
        return spool

    def commits(self, log: CrawlLog, archive: Archive) -> Commits:
        """Return the object that commits the crawl to this JOBDIR."""
        return Commits(self.store, log, archive, self._options)

    def close(self) -> None:
        """Discard uncommitted changes, and unlock the JOBDIR."""
        self._opened.close()

    def close_start(self, *raised: Any) -> None:
        """Close it. If opening a new crawl raised an error, leave a JOBDIR without a crawl."""
        self._opened.__exit__(*raised)

    def _forget_if_refused(self, kind: type[BaseException] | None, *_raised: object) -> None:
        if kind is not None:
            (self._dir.path / JOB).unlink(missing_ok=True)  # first: without its store it would be damaged
            self._dir.clear()

    def _stored_counts(self) -> tuple[int, int]:
        """Return the numbers of pages crawled and documents on lease at the last commit."""
        with closing(Store(self._dir.store_path, readonly=True)) as store:
            state = read_state(store).crawl
            return counted(state["counts"]) if state else 0, store.count(LEASES)


def fixed_settings(options: Options) -> dict[str, Any]:
    """Return the settings that may not change between runs, as they come back from JSON."""
    settings = {o.name: getattr(options, o.name) for o in fields(Options) if o.metadata["fixed"]}
    given: dict[str, Any] = json.loads(json.dumps({name.upper(): value for name, value in settings.items()}))
    return given

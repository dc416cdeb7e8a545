"""What benchmarks.trainlm compares: targets, scorers, and crawls of the real pages without the targets' hosts."""

from __future__ import annotations

import asyncio
import random
import subprocess
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from benchmarks.corpora import SHARED, debian_package, kept
from benchmarks.policy_webs import MemoryWeb, RememberedScores, open_web
from crawl4llm.base.command_lines import quoted
from crawl4llm.base.crawl_log import CrawlLine
from crawl4llm.base.urls import host_of
from crawl4llm.options import Options
from crawl4llm.parts import open_parts
from crawl4llm.policies import make_policy
from crawl4llm.scoring import EXTRACTORS, PageRater, PageWorkers, extract_text, load_extractor, rate_by_key
from crawl4llm.tools._fit import Recipe, fit
from crawl4llm.tools.evaluate.contest.crawling import crawl_in_memory
from crawl4llm.tools.trainlm.plan import Arm, PageText, Target, Tokenizer

REAL, PROSE = SHARED / "clueweb22-real", SHARED / "scorers/prose.bin"
POLICIES: Final = ("influence", "link", "indegree", "random", "breadth_first")
SELECTED: Final = (1, 2, 5)
"""Crawl-then-select: tokens of the random crawl to select from, as a multiple of those that are trained on."""
CURVED: Final = ("influence", "indegree")
SEED_SETS: Final = 3
HOSTS, HOSTS_SEED, HIGH = 6, 0, 0.5
"""Hosts of the first target, the seed that draws them, and the influence of their pages in it."""
_FEWEST_HIGH: Final = 30
"""Pages of a host with such an influence, at least."""
_SEEDS, _PAGES, _POOL = 50, 4000, 12_000
"""Seeds of a crawl, and its pages; those of the random crawl, from which pages are selected too."""
_MARGIN: Final = 20
"""The part of the tokens by which a pool is larger, as some of its pages are left out: those that are in a target."""
_PACKAGES: Final = ("debian-faq", "debian-handbook", "debian-policy", "debian-reference-en", "debmake-doc")
_PACKAGES_MORE: Final = ("developers-reference", "maint-guide")
_OTHER_LANGUAGE: Final = "/usr/share/doc/debian-handbook/html/"


@dataclass(frozen=True)
class Subject:
    """The web, its scores, and the hosts that no crawl may enter."""

    web: MemoryWeb
    scores: RememberedScores
    hosts: Sequence[str]
    blocklist: Path

    def held_back(self) -> list[str]:
        """Return the pages of the hosts of the target."""
        return [key for key in self.web.keys() if host_of(self.web.page(key).url) in self.hosts]


def open_subject(folder: Path) -> Subject:
    """Read the web, score it, and draw the hosts of the target; their block list is written into a folder."""
    web, scores = open_web("whole", REAL), RememberedScores(PROSE)
    high: dict[str, int] = {}
    for key in web.keys():
        if _score(scores, web.text(key)) > HIGH:
            host = host_of(web.page(key).url)
            high[host] = high.get(host, 0) + 1
    hosts = random.Random(HOSTS_SEED).sample(
        sorted(host for host, count in high.items() if count >= _FEWEST_HIGH), HOSTS
    )
    blocklist = folder / "blocked.txt"
    blocklist.write_text("".join(f"{host}\n" for host in hosts))
    return Subject(web, scores, hosts, blocklist)


def _score(scores: RememberedScores, text: str) -> float:
    return scores.score([text])[0] if text.strip() else 0.0


# -- targets -----------------------------------------------------------------------------------------------------------


def targets(subject: Subject) -> tuple[list[Target], list[str]]:
    """Return the targets, and notes on what was left out."""
    texts = map(subject.web.text, subject.held_back())
    high = (text for text in texts if _score(subject.scores, text) > HIGH)
    debian, notes = debian_texts()
    found = [Target.of("six hosts", high)]
    return ([*found, Target.of("Debian", iter(debian))] if debian else found), notes


def debian_texts() -> tuple[list[str], list[str]]:
    """Return the texts of Debian's documentation packages, in English, and notes on packages that are not there."""
    texts, notes = [], []
    load_extractor("trafilatura")
    for package in (*_PACKAGES, *_PACKAGES_MORE):
        try:
            folder = debian_package(package)
        except (OSError, subprocess.CalledProcessError) as error:
            notes.append(f"Debian's package {package} is not here ({error}): the target lacks it")
            continue
        for path in sorted(folder.rglob("*.html")):
            inside = path.relative_to(folder).as_posix()
            if not path.is_file() or (f"/{inside}".startswith(_OTHER_LANGUAGE) and "/en-US/" not in inside):
                continue
            texts.append(extract_text(path.read_bytes(), EXTRACTORS["trafilatura"]))
    return texts, notes


# -- scorers -----------------------------------------------------------------------------------------------------------


def scorers(subject: Subject, aims: Sequence[Target]) -> dict[str, RememberedScores]:
    """Return three scorers: that of prose; one whose good texts are the targets' halves that no model is measured on;
    one whose good texts are those that the first calls bad, as a control. DCLM's recipe, with a small model."""
    allowed = [subject.web.text(key) for key in set(subject.web.keys()).difference(subject.held_back())]
    texts = sorted({text for text in allowed if text.strip()})
    sample = random.Random(0).sample(texts, 4000)
    like = [text for target in aims for text in target.others]
    bad = [text for text in texts if _score(subject.scores, text) < 0.1]
    bad = random.Random(1).sample(bad, min(4000, len(bad)))
    good = [text for text in sample if _score(subject.scores, text) > HIGH]
    return {
        "prose": subject.scores,
        "target": _trained("target", like, sample),
        "reference": _trained("reference", bad, good),
    }


def _trained(name: str, good: Sequence[str], other: Sequence[str]) -> RememberedScores:
    """Return a scorer that is trained once."""
    recipe = Recipe(buckets=200_000, dim=32)
    model = kept() / f"trainlm-{name}.bin"
    if not model.exists():
        examples = model.with_suffix(".txt")
        lines = [f"__label__hq {' '.join(text.split())}\n" for text in good]
        lines += [f"__label__cc {' '.join(text.split())}\n" for text in other]
        random.Random(2).shuffle(lines)
        examples.write_text("".join(lines))
        fit(examples, model, recipe.fasttext(), quantised=None, progress=False)
        examples.unlink()
    return RememberedScores(model)


# -- crawls ------------------------------------------------------------------------------------------------------------


def crawl(subject: Subject, scores: RememberedScores, policy_name: str, seed: int, pages: int) -> list[CrawlLine]:
    """Crawl by a policy from a set of seeds, kept out of the target's hosts by BLOCKLISTS."""
    held_back = set(subject.held_back())
    seeds = random.Random(seed).sample([key for key in subject.web.keys() if key not in held_back], _SEEDS)
    options = replace(
        Options(url_policy=policy_name, crawl_max_pages=pages, crawl_seed=seed),
        blocklists=(str(subject.blocklist),),
    )
    workers = PageWorkers(PageRater(subject.web, scores, extractor=None), processes=0, time_limit=60.0)
    lines = asyncio.run(
        crawl_in_memory(
            subject.web.page,
            options,
            policy=make_policy(workers, options),
            rate=partial(rate_by_key, workers),
            seeds=seeds,
            parts=open_parts(options),
        )
    )
    if any(line["id"] in held_back for line in lines):
        raise AssertionError("a page of the target was crawled")
    return lines


def arms(subject: Subject, scored: Mapping[str, RememberedScores], tokenizer: Tokenizer, tokens: int) -> Iterator[Arm]:
    """Yield all that models are trained on."""
    for seed in range(SEED_SETS):
        for policy in POLICIES:
            lines = crawl(subject, subject.scores, policy, seed, _POOL if policy == "random" else _PAGES)
            yield _arm(policy, seed, "prose", _pages(subject, lines), curved=policy in CURVED)
            if policy == "random":
                margin = tokens // _MARGIN
                pool = list(_pool(subject, lines, tokenizer, SELECTED[-1] * tokens + margin))
                for times in SELECTED:
                    yield _arm(f"select {times}x", seed, "prose", _selected(pool, times * tokens + margin))
        for name, scores in scored.items():
            if name != "prose":
                lines = crawl(subject, scores, "influence", seed, _PAGES)
                yield _arm("influence", seed, name, _pages(subject, lines))


def _arm(policy: str, seed: int, scorer: str, pages: Sequence[PageText], *, curved: bool = False) -> Arm:
    facts = {"policy": policy, "random_seed": seed, "scorer": scorer, "curved": curved}
    return Arm(f"{policy}, {scorer}, {seed}", pages, facts)


def _pages(subject: Subject, lines: Sequence[CrawlLine]) -> list[PageText]:
    return [PageText(subject.web.text(line["id"]), line["fetched"]) for line in lines]


def _pool(
    subject: Subject, lines: Sequence[CrawlLine], tokenizer: Tokenizer, most: int
) -> Iterator[tuple[float, PageText, int]]:
    """Yield score, page and tokens of the pages of a crawl, until they have so many tokens in all."""
    counted = 0
    for line in lines:
        text = subject.web.text(line["id"])
        tokens = len(tokenizer.encode([text])[0]) if text.strip() else 0
        yield _score(subject.scores, text), PageText(text, line["fetched"]), tokens
        counted += tokens
        if counted >= most:
            return
    raise AssertionError(f"{len(lines):,} pages of the random crawl have {counted:,} tokens of {most:,}")


def _selected(pool: Sequence[tuple[float, PageText, int]], wanted: int) -> list[PageText]:
    """Return the first pages with so many tokens in all, the best-scored first; all of them had to be fetched."""
    ends = [*accumulate(tokens for _, _, tokens in pool)]
    taken = pool[: bisect_left(ends, wanted) + 1]
    best = sorted(taken, key=lambda one: -one[0])
    return [page._replace(fetched=taken[-1][1].fetched) for _, page, _ in best]


def told_command(plan: Path, device: str) -> str:
    """Return the command that trains a plan."""
    return " ".join(quoted(["python", "-m", "crawl4llm.tools.trainlm.trainer", plan, "--device", device]))


def described(subject: Subject, aims: Sequence[Target]) -> dict[str, Any]:
    """Return what a report says of web and targets."""
    own = {target.name: len(target.held_out) for target in aims}
    return {"hosts": list(subject.hosts), "pages": len(subject.web), "held_out_texts": own}

"""What a crawl says of itself at its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from crawl4llm.crawl import FRONTIER_EMPTY, MAX_PAGES, Crawl
from crawl4llm.live.web import LiveWeb
from crawl4llm.output import SEEDS, SETTINGS, STATS, read_json
from crawl4llm.progress import in_short
from crawl4llm.stats import PREFIX
from simulate.open import DEMO

_REASONS = {
    MAX_PAGES: "all that were asked for",
    FRONTIER_EMPTY: "the frontier is empty: the seeds lead no further",
    "shutdown": "interrupted",
}
_DONE = (MAX_PAGES, FRONTIER_EMPTY)
_SAME = ("corpus_digest", "model_digest", "text", "extractor", "seeds_digest")
"""What two runs must have in common for their mean influence to be compared."""


def summary(crawl: Crawl, reason: str, output: Path) -> str:
    """The summary of a crawl that ended for ``reason`` and was written to ``output``; some lines of text."""
    figures = crawl.statistics()
    lines = [
        f"Crawled {crawl.crawled:,} of {crawl.options.crawl_max_pages:,} pages ({_REASONS.get(reason, reason)})",
        f"  policy           {crawl.policy.name}",
        f"  mean influence   {in_short(crawl.tally.mean_influence)}",
    ]
    lines += [f"    {comparison}" for comparison in _comparisons(crawl, output)]
    lines += [
        f"  visited          {len(crawl.visited):,} documents from {crawl.seeds:,} seeds",
        f"  fetched          {int(figures.get('pages/fetched') or 0):,} documents",
    ]
    tallies = {outcome: _tally(figures, outcome) for outcome in ("failed", "dropped")}
    lines += [f"  {outcome:<17}{tally}" for outcome, tally in tallies.items() if tally]
    archive = ", warc/" if crawl.options.warc_enabled else ""
    lines.append(f"  output           {output}: crawl.jsonl{archive}, settings.json, stats.json")
    if crawl.lasting and reason not in _DONE:
        lines.append("Next: the same command resumes it")
    elif crawl.crawled and read_json(output / SETTINGS).get("corpus") == LiveWeb.name:
        replay = f"scrapy crawl influence -a seeds={output / SEEDS} -s CORPUS={output} -s SIMULATION_TEXT=extracted"
        if crawl.options.scorer_model is not None:
            replay += f" -s SCORER_MODEL={crawl.options.scorer_model}"
        lines.append(f"Next: replay it with another policy:  {replay} -s URL_POLICY=influence")
    elif crawl.crawled:
        baseline = "random" if crawl.policy.name == "influence" else "influence"
        command = "scrapy crawl influence" if crawl.options.corpus == DEMO else "the same command with"
        lines += [
            f"Next: compare with a policy:  {command} -s URL_POLICY={baseline}",
            f"      look at a page:         scrapy explain ID --run {output}",
        ]
    return "\n".join(lines)


def _tally(figures: dict[str, float | None], outcome: str) -> str:
    counts = {key.partition("/")[2]: int(count or 0) for key, count in figures.items() if key.startswith(f"{outcome}/")}
    listed = ", ".join(f"{reason} {count:,}" for reason, count in sorted(counts.items()))
    return f"{sum(counts.values()):,} documents ({listed})" if counts else ""


def _comparisons(crawl: Crawl, output: Path) -> Iterator[str]:
    """How other policies did from the same seeds in the same corpus, by the newest run of each beside this one."""
    ours = crawl.tally.mean_influence
    settings = read_json(output / SETTINGS)
    others = sorted((path for path in output.parent.iterdir() if path.is_dir() and path != output), reverse=True)
    seen: set[str] = set()
    for other in others:
        theirs, figures = read_json(other / SETTINGS), read_json(other / STATS)
        mean, pages = figures.get(f"{PREFIX}influence/mean"), figures.get(f"{PREFIX}pages/crawled")
        policy = str(theirs.get("policy"))
        comparable = pages and all(theirs.get(name) == settings.get(name) for name in _SAME)
        if ours and mean and comparable and policy not in seen | {crawl.policy.name}:
            seen.add(policy)
            yield f"{ours / mean:.2f} times that of {policy} ({mean:.3f}, {pages:,} pages, {other})"

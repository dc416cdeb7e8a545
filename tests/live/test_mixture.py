"""MIXTURE in a live crawl: classes are judged on what was fetched, and the one that lacks is asked for next."""

from __future__ import annotations

import json
from pathlib import Path

import fasttext
from addon_site import Answer
from crawl_helpers import crawl_log, scrapy
from live_helpers import crawl_live, start_live, text_page, wait_for
from owner_sites import serve_owners

TOPICS = "north", "south", "south"
PAGES, SITE_PAGES, WANTED = 40, 40, 0.75


def about(topic: str, number: int, links: list[str]) -> Answer:
    one = text_page(number, links)
    return one._replace(body=one.body.replace(b"</article>", f"<p>{f'{topic} ' * 60}.</p></article>".encode()))


def test_the_class_that_lacks_is_asked_for_also_after_a_kill(tmp_path: Path) -> None:
    """One site of three is in the north, and three quarters of the pages are to be."""
    examples = tmp_path / "examples.txt"
    examples.write_text("".join(f"__label__{topic} {f'{topic} ' * 9}\n" for topic in TOPICS[:2] * 50))
    model = fasttext.train_supervised(str(examples), dim=4, epoch=20, lr=1.0, thread=1, seed=1, verbose=0)
    model.save_model(str(tmp_path / "place.bin"))
    shares = {"__label__north": WANTED, "__label__south": 1 - WANTED}
    (tmp_path / "mixture.json").write_text(json.dumps({"place": {"model": "place.bin", "shares": shares}}))
    output, job = tmp_path / "run", tmp_path / "job"
    settings = {"CRAWL_BATCH_SIZE": 0, "CRAWL_CONCURRENT_LEASES": 1, "DELAY_FACTOR": 0, "COMMIT_INTERVAL_PAGES": 5}
    settings |= {"MIXTURE": tmp_path / "mixture.json", "JOBDIR": job, "NEAR_DUPLICATES": "off"}
    with serve_owners(3) as sites:
        seeds = [f"{site.url}/0" for site in sites]
        for site, topic in zip(sites, TOPICS, strict=True):
            urls = [f"{site.url}/{number}" for number in range(SITE_PAGES)]
            site.pages = {
                f"/{number}": about(topic, number, [urls[(number + step) % SITE_PAGES] for step in range(1, 6)])
                for number in range(SITE_PAGES)
            }
        process = start_live(seeds, output, **settings, CRAWL_MAX_PAGES=PAGES)
        wait_for(lambda: len(sites[0].paths()) >= 15)
        process.kill()
        process.communicate()
        result = crawl_live(seeds, output, **settings, CRAWL_MAX_PAGES=PAGES)
        assert result.returncode == 0, result.stderr
    lines = crawl_log(output)
    found = [line["classes"]["place"] for line in lines]
    for line, label in zip(lines, found, strict=True):
        assert (label == "__label__north") == line["url"].startswith(sites[0].url)
    share = found.count("__label__north") / PAGES
    assert abs(share - WANTED) < 0.03
    assert f"place __label__north {share:.1%} of the pages, 75.0% wanted" in result.stdout
    assert scrapy("frontier", str(job), "--purge", "127.0.0.12", "--yes").returncode == 0
    assert scrapy("frontier", str(job), "--verify").stdout.startswith("sound: ")

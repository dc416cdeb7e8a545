"""benchmarks.peers.sitemaps: it reads sitemaps from tests in Java, and tells what differs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers import sitemaps
from benchmarks.peers.results import Result

JAVA = r"""
class SiteMapParserTest {
    @Test
    public void testText() throws Exception {
        String scontent = "http://a.example/1\nhttp://a.example/2";
        URL url = new URI("http://a.example/s.txt").toURL();
        assertEquals(2, sm.getSiteMapUrls().size());
    }

    @Test
    public void testXml() {
        StringBuilder scontent = new StringBuilder(9);
        scontent.append("<urlset><url>").append("<loc>http://a.example/\u00e9</loc>" + "</url></urlset>");
        assertEquals(1, sm.getSiteMapUrls().size(), "message");
        scontent = new StringBuilder();
        scontent.append("<sitemapindex><sitemap><loc>/a</loc></sitemap></sitemapindex>");
        assertEquals(2, smi.getSitemaps().size());
    }

    @Test
    public void testFile() {
        byte[] content = getResourceAsBytes("sitemap.xml");
        assertEquals(1, sm.getSiteMapUrls().size());
    }

    @Test
    public void testLenientParser() {
        Assertions.assertThrows(UnknownFormatException.class, () -> {
            String scontent = "http://a.example/1";
        });
    }
}
"""


def test_cases_that_are_the_same_that_are_known_and_others(tmp_path: Path) -> None:
    tests = tmp_path / "crawler-commons/src/test/java/crawlercommons/sitemaps"
    tests.mkdir(parents=True)
    assert sitemaps.run(tmp_path) == []
    (tests / "SiteMapParserTest.java").write_text(JAVA, encoding="utf-8")
    (tmp_path / "crawler-commons/sitemap.xml").write_text("<urlset><url><loc>http://a.example/</loc></url></urlset>")
    failed = ["testXml: 1 URLs instead of 2"]
    assert sitemaps.run(tmp_path) == [Result(sitemaps.SUITE, 3, 1, failed)]

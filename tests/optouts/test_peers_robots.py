"""The reader of other crawlers' tests: each of their assertions is a case, also one that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers import robots, robots_tags
from benchmarks.peers.results import Result

IN_C = r"""
#include "robots.h"
namespace {
class Reporter : public Handler { int lines_ = 0; void Add() { ASSERT_GE(1, lines_); } };
// A comment: EXPECT_TRUE(false);
TEST(Unit, Plain) {
  const absl::string_view rules =
      "user-agent: foo\n"
      "disallow: /\xC3\xBC/\n";
  std::string url = "http://foo.bar/%C3%BC/";
  { EXPECT_FALSE(IsUserAgentAllowed(rules, "foo", url)); }
  EXPECT_TRUE(IsUserAgentAllowed(rules, "foo", "http://foo.bar/"));
  EXPECT_TRUE(IsUserAgentAllowed(rules, "foo", absl::StrCat(url, "x")));
}
TEST(Unit, Loop) {
  std::string path = "/a";
  size_t most = 4 * 2 - path.length();
  while (path.size() < most) { absl::StrAppend(&path, "b", "c"); }
  EXPECT_FALSE(IsUserAgentAllowed(absl::StrCat("user-agent: foo\ndisallow: /abcbc\n"), "foo", path));
  EXPECT_TRUE(IsUserAgentAllowed(Somewhere(), "foo", "/"));
}
TEST(Unit, ID_Encoding) {
  EXPECT_FALSE(IsUserAgentAllowed("user-agent: FooBot\ndisallow: /\nallow: /foo", "FooBot", "http://foo.bar/foo/bar/baz"));
}
TEST(Unit, TestGetPathParamsQuery) { EXPECT_TRUE(Elsewhere()); }
}
"""
IN_JAVA = r"""
package x;
public class T {
    private static final String CR = "\r";
    @Test
    void testDelay() throws Exception {
        final String text = "User-agent: a" + CR //
                        + "Crawl-delay: 10" + CR;
        BaseRobotRules rules = createRobotRules("a", text);
        assertEquals(10000, rules.getCrawlDelay(), "delay");
        assertEquals(BaseRobotRules.UNSET_CRAWL_DELAY, createRobotRules("b", text).getCrawlDelay());
        assertEquals(2000, createRobotRules("a", text, true).getCrawlDelay());
        String[] names = { "a", "b" };
        for (String name : names) { assertTrue(createRobotRules(name, text).isAllowed("http://h/" + name)); }
        for (int i = 0; i < names.length; i++) { check(names[i], text.getBytes(UTF_8)); }
        assertTrue(rules.isUnheardOf());
    }
    void check(String name, byte[] text) { assertFalse(createRobotRules(name, text).isAllowed("http://h/")); }
    @ParameterizedTest
    @CsvSource({ "False, /a", //
                    "True, /b" })
    void testRows(boolean isAllowed, String path) {
        assertEquals(isAllowed, createRobotRules("x", "user-agent: *\ndisallow: /a").isAllowed("http://h" + path));
    }
}
"""
IN_PROTO = r"""
# proto-file: x
tests: [ { robotstxt: "user-agent: foo\n"
        "disallow: /\xEF"
    test_expectations: [
      { testurl: "http://h/%EF" useragent: "foo" expected_outcome: DISALLOWED additional_explanation: "a" "b" },
      { testurl: "http://h/" useragent: "foo" expected_outcome: DISALLOWED } ] } ]
"""
METAS = r"""
class T { public static String[] tests = {
        "<meta name=\"robots\"" + " content=\"noindex\">",
        "<meta name=robots content=\"none\">" };
    public static final boolean[][] answers = { { true, false, false }, { true, true, true } }; }
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "robots_test.cc",
            IN_C,
            Result(
                "google/robotstxt",
                3,
                1,
                ["Plain: foo http://foo.bar/%C3%BC/x: forbidden here", "Loop: EXPECT_TRUE: not read"],
            ),
        ),
        (
            "SimpleRobotRulesParserTest.java",
            IN_JAVA,
            Result(
                "crawler-commons, robots",
                6,
                0,
                [
                    "testDelay: a: 10000.0, not 2000",
                    "testDelay: a http://h/: allowed here",
                    "testDelay: b http://h/: allowed here",
                    "testDelay: assertTrue: not read",
                ],
            ),
        ),
        (
            "CTC/correctness/one.textproto",
            IN_PROTO,
            Result("google/robotstxt-spec-test", 1, 0, ["one: foo http://h/: allowed here"]),
        ),
    ],
)
def test_cases_are_counted(tmp_path: Path, name: str, text: str, expected: Result) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    assert robots.run(tmp_path) == [expected]


def test_metas(tmp_path: Path) -> None:
    (tmp_path / "JSoupParserBoltTest.java").write_text(METAS)
    assert robots_tags.run(tmp_path) == [Result("StormCrawler, metas", 5, 1, [])]
    (tmp_path / "JSoupParserBoltTest.java").write_text("class T { }")
    assert robots_tags.run(tmp_path) == [
        Result("StormCrawler, metas", 0, 0, ["JSoupParserBoltTest.java: tests, answers: not read"])
    ]

"""Rules for sites of a software: what each holds of, which sites are recognised, and that a crawl heeds them."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence

import pytest

from crawl4llm.base.page_heads import PageHead
from crawl4llm.base.software_marks import ASSETS, COOKIE, ELEMENT, GENERATOR, SOFTWARE, Mark
from crawl4llm.frontier import Entry
from crawl4llm.options import Options
from crawl4llm.parts import Rated
from crawl4llm.parts.site_rules import LISTS
from crawl4llm.parts.site_rules.recognising import Sites, is_row
from crawl4llm.parts.site_rules.work import RulesOfSites, SiteRules, software_of
from crawl4llm.policies import Candidate

ALL = software_of(LISTS)
DROPPED = {
    "mediawiki.action": ["/index.php?title=Talk:X&action=edit&redlink=1", "/w/index.php?title=X&action=history"],
    "mediawiki.revision": ["/index.php?title=X&oldid=12", "/index.php?title=X&diff=prev&oldid=12"],
    "mediawiki.special": [
        "/wiki/Special:RecentChanges",
        "/index.php?title=Spezial%3AAnmelden",
        "/wiki/Sp%C3%A9cial:Lien",
    ],
    "mediawiki.view": ["/index.php?title=X&printable=yes", "/wiki/X?mobileaction=toggle_view_mobile"],
    "dokuwiki.do": ["/doku.php?id=a:b&do=edit", "/a/b?do=export_xhtml", "/doku.php?id=x&do%5Bindex%5D="],
    "dokuwiki.revision": ["/doku.php?id=start&rev=1600000000"],
    "dokuwiki.index": ["/doku.php?id=start&idx=wiki"],
    "dokuwiki.file": ["/lib/exe/detail.php?id=x&media=y.png", "/feed.php?ns=a"],
    "moinmoin.action": ["/FrontPage?action=info", "/FrontPage?action=AttachFile&do=view"],
    "wordpress.reply": ["/2020/01/05/post/?replytocom=12", "/?p=5&replytocom=3"],
    "wordpress.feed": ["/feed/", "/2020/01/05/post/feed/", "/comments/feed/", "/?feed=rss2", "/feed/atom/"],
    "wordpress.date": [
        "/2020/",
        "/2020/01/",
        "/2020/01/05/",
        "/2020/01/page/2/",
        "/?m=202001",
        "/archives/date/2020/01",
    ],
    "wordpress.author": ["/author/anna/", "/?author=1", "/archives/author/anna"],
    "wordpress.tag": ["/tag/red/", "/?tag=red", "/archives/tag/red"],
    "wordpress.form": ["/wp-login.php?redirect_to=x", "/wp-json/wp/v2/posts", "/xmlrpc.php"],
    "drupal.form": ["/comment/reply/12/3", "/user/login?destination=node/1", "/?q=user/register", "/de/user/12"],
    "joomla.view": ["/a?format=feed&type=rss", "/index.php?view=article&id=3&tmpl=component&print=1"],
    "phpbb.post": ["/viewtopic.php?f=1&p=12", "/viewtopic.php?t=3&view=next"],
    "phpbb.form": ["/ucp.php?mode=login", "/memberlist.php?mode=viewprofile&u=2", "/posting.php?mode=reply&t=1"],
    "mybb.form": ["/member.php?action=profile&uid=1", "/newreply.php?tid=4", "/search.php?action=getdaily"],
    "mybb.post": ["/showthread.php?tid=4&pid=12", "/showthread.php?tid=4&action=lastpost", "/thread-4-post-12.html"],
    "mybb.archive": ["/archive/index.php?thread-4.html", "/printthread.php?tid=4"],
    "mybb.order": ["/forumdisplay.php?fid=2&datecut=9999&sortby=subject&order=asc"],
    "mybb.calendar": ["/calendar.php?action=dayview&day=3"],
    "vbulletin.post": ["/showthread.php?p=44", "/showthread.php?t=4&goto=newpost"],
    "xenforo.post": ["/threads/a-thread.12/post-345", "/threads/a-thread.12/latest"],
    "xenforo.form": ["/members/anna.3/", "/whats-new/posts/", "/index.php?members/anna.3/", "/posts/12/"],
    "smf.action": ["/index.php?action=profile;u=1", "/index.php?action=printpage;topic=1.0"],
    "smf.post": ["/index.php?topic=1.msg12", "/index.php?topic=1.0;prev_next=next", "/index.php?topic=1.new"],
    "discourse.form": ["/u/anna", "/search?q=x", "/latest.rss", "/t/a-topic/12.json"],
    "discourse.post": ["/t/a-topic/12/3"],
    "machina.post": ["/forum/a-1/topic/b-2/?post=12"],
    "woocommerce.basket": ["/shop/?add-to-cart=12", "/cart/", "/my-account/lost-password/"],
    "woocommerce.filter": ["/shop/?orderby=price", "/product-category/a/?filter_color=red&query_type_color=or"],
    "magento.form": ["/catalogsearch/result/?q=x", "/checkout/cart/", "/customer/account/login/"],
    "magento.filter": ["/shoes.html?product_list_order=price", "/shoes.html?dir=asc&order=price", "/?SID=abc"],
    "ikiwiki.date": ["/archives/2020/05/", "/archives/2020.html"],
    "ikiwiki.feed": ["/blog/index.rss", "/blog.atom"],
    "hugo.feed": ["/posts/index.xml"],
    "pelican.feed": ["/feeds/all.atom.xml"],
    "roundup.query": ["/issue?@columns=id&@search_text=ids"],
    "opencart.form": [
        "/index.php?route=product/product/review&product_id=4",
        "/index.php?route=product/product.review&product_id=4",
        "/index.php?route=account/login",
        "/index.php?route=product/compare",
        "/index.php?route=checkout/cart",
    ],
    "opencart.filter": ["/index.php?route=product/category&path=20&sort=p.price&order=ASC", "/desktops?limit=50"],
    "prestashop.filter": ["/3-clothes?order=product.price.asc", "/3-clothes?q=Size-S"],
    "prestashop.form": ["/index.php?controller=password", "/cart?add=1&id_product=3"],
    "shopify.collection": ["/collections/all/products/a-shirt"],
    "shopify.filter": ["/collections/all?sort_by=price-ascending", "/products/a?variant=12"],
    "oscar.form": ["/basket/add/12/", "/accounts/login/"],
    "oscar.filter": ["/catalogue/?sort_by=price-asc"],
    "trac.timeline": ["/timeline?from=2020-01-01"],
    "trac.query": ["/query?desc=1&order=id&status=new", "/report/1?sort=ticket&asc=1"],
    "trac.change": ["/changeset/12", "/log/trunk/a.c", "/browser/trunk/a.c?rev=12", "/browser/a.c?annotate=blame"],
    "trac.revision": ["/wiki/Page?action=diff&version=3", "/ticket/3?format=csv"],
    "roundup.message": ["/msg12"],
    "roundup.form": ["/user3", "/issue3?@action=retire", "/?@template=forgotten"],
    "bugzilla.form": ["/show_activity.cgi?id=3", "/enter_bug.cgi?product=x", "/attachment.cgi?id=4"],
    "bugzilla.view": ["/show_bug.cgi?id=3&ctype=xml"],
    "redmine.form": ["/login?back_url=x", "/issues/gantt", "/issues/12/edit", "/projects/a/activity"],
    "redmine.repository": ["/projects/a/repository/revisions/12"],
    "redmine.view": ["/projects/a/issues?sort=id", "/issues/12.pdf"],
    "mantis.form": ["/login_page.php", "/print_bug_page.php?bug_id=3", "/view_user_page.php?id=2"],
    "gitweb.action": ["/?p=a.git;a=commitdiff;h=0", "/gitweb.cgi?p=a.git;a=log", "/?p=a.git&a=blob_plain;f=x"],
    "cgit.action": ["/a.git/log/", "/a.git/commit/?id=0", "/a.git/plain/x"],
    "cgit.revision": [f"/a.git/tree/x?id={'0' * 40}", "/a.git/tree/x?h=old"],
    "gitlab.change": ["/g/p/-/blame/main/x", "/g/p/-/commits/main", f"/g/p/-/blob/{'0' * 40}/x"],
    "gitea.view": ["/u/r/issues?q=x&state=open", "/u/r/issues?type=assigned"],
    "gitea.change": ["/u/r/commit/0123456", "/u/r/src/commit/0123456/x", "/u/r/blame/branch/main/x"],
    "viewvc.view": ["/viewvc/a/x?view=log", "/viewvc/a/x?r1=1&r2=2"],
    "hgweb.action": ["/repo/rev/0123456789ab", "/repo/annotate/tip/x"],
    "public_inbox.raw": ["/list/1@x/raw", "/list/1@x/t.mbox.gz", "/list/new.atom"],
    "public_inbox.thread": ["/list/1@x/t/", "/list/1@x/t/?x=1"],
    "pipermail.order": ["/pipermail/list/2020-May/author.html"],
    "hyperkitty.form": ["/list/a@b/export/a.mbox.gz?start=1", "/list/a@b/message/new", "/accounts/login/"],
    "sphinx.source": ["/_sources/intro.rst.txt", "/en/latest/_sources/intro.rst"],
    "sphinx.index": ["/genindex.html", "/genindex-A.html", "/py-modindex.html", "/genindex/"],
    "sphinx.search": ["/search.html", "/search.html?q=x"],
    "javadoc.index": ["/api/index-files/index-3.html"],
    "hugo.tag": ["/tags/red/", "/en/tags/red/page/2/"],
    "jekyll.tag": ["/tag/red/"],
    "jekyll.date": ["/2020/", "/blog/2020/05/"],
    "pelican.author": ["/author/anna.html"],
    "nikola.tag": ["/categories/red/", "/en/categories/red.html"],
    "nikola.date": ["/2020/05/", "/posts/2020/"],
}
KEPT = {
    "mediawiki": [
        "/",
        "/wiki/Category:Cats",
        "/index.php?title=X",
        "/index.php/X",
        "/wiki/Action=x",
        "/wiki/X?action=view",
        "/index.php?title=Category:Cats&pagefrom=M",
    ],
    "dokuwiki": ["/", "/doku.php?id=a:b", "/a/b", "/doku.php?id=do:edit", "/doku.php?id=a&do=show"],
    "wordpress": [
        "/",
        "/page/2/",
        "/category/cats/",
        "/category/cats/page/2/",
        "/2020/01/05/a-post/",
        "/?p=12",
        "/archives/12",
        "/?paged=2",
        "/?cat=3",
        "/2020/12/15/2020/",
        "/tagged/",
        "/?page_id=2",
    ],
    "drupal": ["/", "/node/12", "/taxonomy/term/3", "/?q=node/12", "/users-guide", "/node?page=2", "/research/x"],
    "joomla": ["/", "/index.php?option=com_content&view=article&id=3", "/blog?start=10"],
    "phpbb": ["/", "/viewforum.php?f=1&start=25", "/viewtopic.php?f=1&t=12", "/viewtopic.php?t=12&start=10"],
    "mybb": [
        "/",
        "/index.php",
        "/forumdisplay.php?fid=2&page=3",
        "/showthread.php?tid=4",
        "/showthread.php?tid=4&page=2",
        "/forum-2-page-3.html",
        "/thread-4.html",
        "/thread-4-page-2.html",
        "/announcements.php?aid=1",
    ],
    "vbulletin": [
        "/forumdisplay.php?f=2&page=2",
        "/showthread.php?t=4",
        "/showthread.php?t=4&page=2",
        "/threads/12-a-thread",
        "/forumdisplay.php?f=2&order=desc&page=2",
    ],
    "xenforo": [
        "/",
        "/forums/a.2/page-3",
        "/threads/a-thread.12/",
        "/threads/a-thread.12/page-2",
        "/index.php?threads/a.12/",
    ],
    "smf": [
        "/index.php",
        "/index.php?board=2.20",
        "/index.php?topic=1.0",
        "/index.php?topic=1.15",
        "/index.php/topic,1.0.html",
    ],
    "discourse": [
        "/",
        "/latest",
        "/latest?page=2",
        "/c/a/5",
        "/t/a-topic/12",
        "/t/a-topic/12?page=2",
        "/categories",
        "/tag/red",
    ],
    "machina": [
        "/forum/",
        "/forum/forum/a-1/?page=2",
        "/forum/forum/a-1/topic/b-2/",
        "/forum/forum/a-1/topic/b-2/?page=2",
    ],
    "spirit": ["/", "/category/4/a/", "/category/4/a/?page=2", "/topic/active/", "/topic/12/a/", "/topic/12/a/?page=2"],
    "zencart": [
        "/index.php?main_page=index&cPath=1&sort=20a&page=2",
        "/index.php?main_page=product_info&products_id=3",
    ],
    "blogger": ["/", "/2020/05/", "/2020/05/a-post.html", "/p/about.html"],
    "woocommerce": ["/shop/", "/shop/page/2/", "/product/a-cup/", "/product-category/cups/"],
    "magento": ["/", "/shoes.html", "/shoes.html?p=2", "/a-shoe.html"],
    "opencart": [
        "/",
        "/index.php?route=product/product&product_id=40",
        "/index.php?route=product/category&path=20&page=2",
        "/index.php?route=information/information&information_id=4",
        "/index.php?route=product/manufacturer/info&manufacturer_id=8",
        "/index.php?route=product/product&path=57&product_id=49",
        "/index.php?route=information/sitemap",
        "/desktops/mac",
    ],
    "prestashop": ["/", "/3-clothes", "/3-clothes?page=2", "/men/1-1-shirt.html", "/content/4-about-us"],
    "shopify": [
        "/",
        "/collections/all",
        "/collections/all?page=2",
        "/products/a-shirt",
        "/blogs/news/a-post",
        "/pages/about",
    ],
    "oscar": ["/catalogue/", "/catalogue/a-book_12/", "/catalogue/category/books_2/?page=2"],
    "trac": [
        "/wiki",
        "/wiki/TitleIndex",
        "/ticket/3",
        "/report",
        "/report/1",
        "/query?status=new&milestone=1",
        "/query?group=resolution&milestone=1&status=closed",
        "/report/1?asc=1&page=2",
        "/milestone/1",
        "/roadmap",
        "/browser",
        "/browser/trunk/README",
        "/timeline",
    ],
    "roundup": [
        "/issue?@sort=-activity&@search_text=&@dispname=Show%20All&@columns=id&status=1",
        "/issue3",
        "/issue?@columns=title,id&@sort=-activity&status=1",
        "/",
        "/issue?@template=index&@startwith=50",
    ],
    "bugzilla": ["/show_bug.cgi?id=3", "/buglist.cgi?product=a", "/describecomponents.cgi"],
    "redmine": [
        "/projects/a",
        "/projects/a/wiki/Guide",
        "/issues/12",
        "/projects/a/issues?page=2",
        "/news/3",
        "/boards/1/topics/4",
    ],
    "mantis": ["/view.php?id=3", "/view_all_bug_page.php?page_number=2", "/main_page.php"],
    "gitweb": [
        "/",
        "/?p=a.git",
        "/?p=a.git;a=summary",
        "/?p=a.git;a=tree",
        "/?p=a.git;a=blob;f=README;h=0;hb=HEAD",
        "/?p=a.git;a=tree;f=doc;hb=HEAD",
    ],
    "cgit": ["/", "/a.git/", "/a.git/about/", "/a.git/tree/", "/a.git/tree/doc/README"],
    "gitea": [
        "/u/r",
        "/u/r/src/branch/main/README.md",
        "/u/r/issues",
        "/u/r/issues/3",
        "/u/r/issues?q=&type=all&sort=&state=closed&labels=&milestone=0&assignee=0&poster=0",
        "/u/r/wiki/Home",
    ],
    "gitlab": [
        "/g/p",
        "/g/p/-/issues/3",
        "/g/p/-/wikis/home",
        "/g/p/-/blob/main/README.md",
        "/g/p/-/issues?state=closed",
    ],
    "public_inbox": ["/list/", "/list/1@x/", "/list/1@x/T/", "/list/?t=20200101000000"],
    "pipermail": ["/pipermail/list/", "/pipermail/list/2020-May/thread.html", "/pipermail/list/2020-May/000123.html"],
    "hyperkitty": ["/list/a@b/", "/list/a@b/2020/5/", "/list/a@b/thread/ABC/", "/list/a@b/message/ABC/"],
    "sphinx": ["/", "/index.html", "/tutorial/searching.html", "/research.html", "/api/index.html", "/_modules/a.html"],
    "javadoc": ["/api/allclasses-index.html", "/api/p/C.html", "/api/p/package-summary.html"],
    "ikiwiki": ["/", "/blog/", "/posts/a-post/", "/tags/", "/archives/"],
    "hugo": ["/", "/posts/", "/posts/page/2/", "/categories/a/", "/tags/", "/posts/a/"],
    "jekyll": ["/", "/page2/", "/2020/05/06/a-post.html", "/archive/", "/categories/"],
    "pelican": ["/", "/archives.html", "/category/a.html", "/a-post.html", "/index2.html"],
    "nikola": ["/", "/archive.html", "/posts/a-post/", "/categories/cat_a/", "/index-1.html", "/categories/"],
}
"""Pages with content, and lists that lead to them."""


def marks(name: str, *kinds: str, root: str = "") -> tuple[Mark, ...]:
    return tuple(Mark(name, kind, root if kind == ASSETS else "") for kind in kinds or (GENERATOR,))


def learnt(*pages: tuple[str, Sequence[Mark]]) -> RulesOfSites:
    rules = RulesOfSites(ALL)
    for url, found in pages:
        rules.sites.learn(url, found)
    return rules


# -- the table -------------------------------------------------------------------------------------------------------


def test_the_table_is_whole() -> None:
    names = [of.name for of in ALL]
    assert sorted(names) == sorted(SOFTWARE), "each software has marks, and rules"
    assert len({(of.name, rule.name) for of in ALL for rule in of.rules}) == sum(len(of.rules) for of in ALL)
    for of in ALL:
        assert re.match(r"https?://", of.source), of.name
        for rule in of.rules:
            assert rule.name.isidentifier()
            assert re.compile(rule.pattern).groups == 0, (of.name, rule.name)
            assert rule.why
            assert not rule.source or re.match(r"https?://", rule.source)


@pytest.mark.parametrize(("rule", "paths"), DROPPED.items(), ids=DROPPED)
def test_what_a_rule_holds_of(rule: str, paths: Sequence[str]) -> None:
    rules, name = RulesOfSites(ALL), rule.partition(".")[0]
    assert {path: rules.rule_for(name, path) for path in paths} == dict.fromkeys(paths, rule)


@pytest.mark.parametrize(("name", "paths"), KEPT.items(), ids=KEPT)
def test_what_is_kept(name: str, paths: Sequence[str]) -> None:
    rules = RulesOfSites(ALL)
    assert {path: rules.rule_for(name, path) for path in paths} == dict.fromkeys(paths)


@pytest.mark.parametrize(
    "piece", ["/a", "a=1&", "?a=", "%2F", "/2020", "_", "topic=1.", "view", ";", "/src/", "x.git/", "?"]
)
def test_no_rule_takes_long(piece: str) -> None:
    rules = RulesOfSites(ALL)
    began = time.process_time()
    for of in ALL:
        rules.rule_for(of.name, "/" + piece * (100_000 // len(piece)))
    assert time.process_time() - began < 2.0


# -- which sites are recognised --------------------------------------------------------------------------------------

EDIT = "https://w.example/wiki/index.php?title=A&action=edit"


def test_a_site_is_recognised_by_two_kinds_of_marks_or_two_pages() -> None:
    page = "https://w.example/wiki/A"
    assert learnt((page, marks("mediawiki"))).rule_of(EDIT) is None
    assert learnt((page, marks("mediawiki", GENERATOR, ASSETS, root="/wiki/"))).rule_of(EDIT) == "mediawiki.action"
    two = learnt((page, marks("mediawiki")), ("http://w.example/wiki/B", marks("mediawiki", COOKIE)))
    assert two.rule_of(EDIT) == "mediawiki.action"
    for other in ("x.example", "w.example:8080"):
        assert two.rule_of(EDIT.replace("w.example", other)) is None
    assert two.rule_of("clueweb22-en0000-00-00000") is None


def test_two_marks_of_one_kind_are_one() -> None:
    both = (Mark("mediawiki", ASSETS, "/a/"), Mark("mediawiki", ASSETS, "/b/"))
    assert learnt(("https://w.example/", both)).rule_of(EDIT) is None


def test_a_page_that_lies_is_outvoted() -> None:
    rules = learnt(("https://w.example/wiki/A", marks("mediawiki", GENERATOR, ELEMENT)))
    assert rules.rule_of(EDIT) == "mediawiki.action"
    for number in range(2):
        rules.sites.learn(f"https://w.example/wiki/{number}", ())
    assert rules.rule_of(EDIT) is None


def test_software_lies_below_a_path() -> None:
    """Other sites of the same host are left alone, and do not count against it."""
    root = {"root": "/blog/"}
    rules = learnt(
        ("https://u.example/blog/2020/01/02/a/", marks("wordpress", ASSETS, **root)),
        *((f"https://u.example/~anna/{number}.html", ()) for number in range(9)),
        ("https://u.example/blog/", marks("wordpress", GENERATOR, ASSETS, **root)),
    )
    assert rules.rule_of("https://u.example/blog/2020/01/") == "wordpress.date"
    assert rules.rule_of("https://u.example/~anna/2020/01/") is None
    assert rules.rule_of("https://u.example/2020/01/") is None
    assert rules.rule_of("https://u.example") is None


def test_pages_and_scripts_of_a_wiki_may_lie_side_by_side() -> None:
    rules = learnt(("https://w.example/wiki/A", marks("mediawiki", GENERATOR, ASSETS, root="/w/")))
    assert rules.rule_of("https://w.example/w/index.php?title=A&action=edit") == "mediawiki.action"
    assert rules.rule_of("https://w.example/wiki/Special:Version") == "mediawiki.special"


def test_what_is_noted_of_a_host_is_bounded() -> None:
    sites = Sites(SOFTWARE)
    for name in SOFTWARE:
        sites.learn("https://a.example/" + "x/" * 5000, marks(name, GENERATOR, ASSETS, root="/" + "y/" * 5000))
    for number in range(1000):
        sites.learn(f"https://{number}.example/", ())
    assert list(sites.stored) == ["a.example"]
    assert len(sites.stored["a.example"]) == 8
    assert len(str(sites.stored)) < 4000
    assert is_row(sites.stored["a.example"])


@pytest.mark.parametrize(
    "url", ["", "http://", "http://[::1/a?b", "https://a.example?x=/", "a b", "http:///x", "x://y"]
)
def test_odd_urls_are_taken(url: str) -> None:
    rules = learnt((url, marks("mediawiki", GENERATOR, ELEMENT)))
    assert rules.rule_of(url) is None


@pytest.mark.parametrize(
    "value", [None, {}, [[]], [["a", "/", 1, 0, 1]], [["a", "b", 1, 0, True]], [["a", "/", -1, 0, True]]]
)
def test_a_damaged_row_is_known(value: object) -> None:
    assert not is_row(value)


# -- the part --------------------------------------------------------------------------------------------------------


def part(**settings: object) -> SiteRules:
    made = SiteRules(Options(site_rules=LISTS, **settings))
    made.counts = Counter()
    made.begin()
    page = Rated(0.5, key="https://w.example/wiki/A", head=PageHead(marks=marks("mediawiki", GENERATOR, ELEMENT)))
    made.crawled(Entry("https://w.example/", "https://w.example/", 0.0, 0, None), page)
    return made


def test_links_redirects_and_what_is_queued_are_dropped_and_seeds_are_not() -> None:
    made = part()
    assert made.counts["sites/recognised"] == 1
    refused = made.admits(Candidate(EDIT, EDIT, 1, "https://w.example/wiki/A"))
    assert refused is not None
    assert refused.reason == "site_rule"
    assert refused.why is not None
    assert refused.why.rule == "SITE_RULES mediawiki.action"
    assert refused.counted == "links/site_rule/mediawiki.action"
    queued = Entry(EDIT, EDIT, 0.5, 1, "https://w.example/wiki/A")
    seed = Entry(EDIT, EDIT, 0.5, 0, None)
    assert made.drops(queued) == refused
    assert made.drops(seed) is None
    assert made.redirects(Entry("https://x.example/", "", 0.0, 0, None), EDIT) == refused
    assert made.redirects(seed, EDIT.replace("edit", "history")) is None
    bare = Entry("http://example/wiki/index.php?title=B&action=raw", "", 0.5, 0, None)
    assert made.redirects(bare, EDIT) is None, "a host with www. before it is the same one"
    assert made.seeds(EDIT) is None


def test_scope_allow_has_exceptions() -> None:
    made = part(scope_allow=(r"action=edit$",))
    assert made.admits(Candidate(EDIT, EDIT, 1, "x")) is None
    assert made.admits(Candidate(EDIT + "&x", EDIT + "&x", 1, "x")) is not None

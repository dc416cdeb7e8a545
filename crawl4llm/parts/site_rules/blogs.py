"""Rules for blogs, and for content management systems."""

from __future__ import annotations

from typing import Final

from crawl4llm.parts.site_rules.table import Q, Rule, Software

DAY: Final = r"(?:19|20)\d\d(?:/(?:0?[1-9]|1[0-2])(?:/(?:0?[1-9]|[12]\d|3[01]))?)?"
"""A year, month or day in a path."""

SOFTWARE: Final = (
    Software(
        "wordpress",
        "WordPress",
        "https://developer.wordpress.org/reference/classes/wp_query/",
        (
            Rule(
                "reply",
                rf"{Q}(?:replytocom|unapproved|moderation-hash|like_comment)=",
                "the same post, with the form for an answer",
                "https://developer.wordpress.org/reference/functions/get_comment_reply_link/",
            ),
            Rule(
                "feed",
                rf"/feed(?:/(?:atom|rss2?|rdf))?/?(?:\?|$)|{Q}(?:feed|withcomments)=|/wp-(?:rss2?|atom|rdf)\.php",
                "feeds of posts and comments",
                "https://developer.wordpress.org/advanced-administration/wordpress/feeds/",
            ),
            Rule(
                "form",
                r"/(?:wp-(?:login|signup|activate|register|comments-post|trackback|mail|cron)\.php|wp-admin/|wp-json/|xmlrpc\.php|trackback/?$)",
                "logins, forms and interfaces",
                "https://developer.wordpress.org/reference/functions/do_robots/",
            ),
            Rule(
                "search",
                rf"{Q}s=|^/search/",
                "results of searches; WordPress marks them noindex",
                "https://developer.wordpress.org/reference/functions/wp_robots_noindex_search/",
            ),
            Rule(
                "date",
                rf"^/(?:index\.php/)?(?:archives/)?(?:date/)?{DAY}/?(?:page/\d+/?)?(?:\?|$)|{Q}m=\d{{4}}|{Q}(?:year|monthnum|day)=",
                "the same posts, by year, month and day: categories and pages of the blog lead to all of them",
                "https://developer.wordpress.org/themes/basics/template-hierarchy/",
            ),
            Rule(
                "author",
                rf"^/(?:index\.php/)?(?:archives/)?author/|{Q}author(?:_name)?=",
                "the same posts, by author",
                "https://developer.wordpress.org/themes/basics/template-hierarchy/",
            ),
            Rule(
                "tag",
                rf"^/(?:index\.php/)?(?:archives/)?tag/|{Q}tag(?:_id)?=",
                "the same posts, by tag",
                "https://developer.wordpress.org/themes/basics/template-hierarchy/",
            ),
            Rule(
                "view",
                rf"{Q}(?:share|shared|print|printpage|amp|preview|attachment_id|nb|noamp|pfstyle|cpage|fdx_switcher|ical|tribe-bar-date)(?:=|&|$)"
                r"|/(?:amp|embed|print|comment-page-\d+)/?(?:\?|$)",
                "second views of a post",
                "https://developer.wordpress.org/reference/functions/get_comments_pagenum_link/",
            ),
        ),
    ),
    Software(
        "drupal",
        "Drupal",
        "https://git.drupalcode.org/project/drupal/-/blob/11.x/core/assets/scaffold/files/robots.txt",
        (
            Rule(
                "form",
                rf"(?:^/|{Q}q=)(?:index\.php/)?(?:[a-z]{{2}}(?:-[a-z]+)?/)?(?:admin|comment/(?:reply|edit|delete)|filter/tips|node/add|search|user(?:/(?:register|password|log(?:in|out)|\d+))?)(?:/|\?|&|$)",
                "forms, logins and searches",
            ),
            Rule(
                "revision",
                r"/node/\d+/(?:edit|revisions|track|delete|devel|outline)\b",
                "histories and forms",
                "https://www.drupal.org/docs/user_guide/en/content-edit.html",
            ),
            Rule(
                "comment",
                r"^/(?:index\.php/)?comment/\d+",
                "the same page, at a comment of it",
                "https://www.drupal.org/docs/8/core/modules/comment",
            ),
            Rule(
                "view",
                rf"/(?:print(?:able)?|printmail|printpdf|book/export)/|/feed$|/rss\.xml|{Q}(?:destination|order|sort_by|sort_order)=",
                "prints, feeds, sort orders and ways back",
                "https://www.drupal.org/project/printable",
            ),
        ),
    ),
    Software(
        "joomla",
        "Joomla!",
        "https://docs.joomla.org/Search_Engine_Friendly_URLs",
        (
            Rule(
                "form",
                rf"{Q}option=com_(?:users?|search|finder|mailto|login|ajax|banners|wrapper)\b|/component/(?:users|search|finder|mailto|ajax|banners)\b|^/administrator/",
                "forms, logins and searches",
                "https://github.com/joomla/joomla-cms/blob/5.2-dev/robots.txt.dist",
            ),
            Rule(
                "view",
                rf"{Q}(?:format=(?:feed|pdf|raw|json)|tmpl=component|print=|type=(?:rss|atom)|filter_order|task=|view=(?:login|registration|reset|remind|form))",
                "feeds, prints, sort orders and forms",
            ),
        ),
    ),
    Software(
        "typo3",
        "TYPO3",
        "https://docs.typo3.org/m/typo3/reference-typoscript/main/en-us/TopLevelObjects/Page/Index.html",
        (
            Rule("type", rf"{Q}type=\d+|{Q}print=1", "other types of a page: print, feed, data"),
            Rule(
                "form",
                rf"{Q}tx_(?:felogin|indexedsearch|kesearch|srfeuserregister|powermail|comments)\w*(?:\[|=)|^/typo3/",
                "logins, searches and forms",
                "https://docs.typo3.org/c/typo3/cms-indexed-search/main/en-us/",
            ),
            Rule(
                "date",
                rf"{Q}tx_(?:tt)?news(?:_pi1)?\[(?:overwriteDemand\]\[)?(?:year|month|pS|pL|arc|day|calendar)",
                "the same articles, by date",
                "https://docs.typo3.org/p/georgringer/news/main/en-us/",
            ),
        ),
    ),
    Software(
        "blogger",
        "Blogger",
        "https://support.google.com/blogger/answer/41380 (its robots.txt disallows /search)",
        (
            Rule("search", r"^/search\b", "results of searches, labels and older posts"),
            Rule(
                "view",
                rf"{Q}(?:m|showComment|widgetType|action|skin|interstitial)=|^/feeds/|^/share-post|^/email-post",
                "second views of a post, feeds and forms",
            ),
        ),
    ),
    Software(
        "ghost",
        "Ghost",
        "https://github.com/TryGhost/Ghost/blob/main/ghost/core/core/frontend/public/robots.txt",
        (
            Rule(
                "form", r"^/(?:ghost|p|r|email|members|webmentions)/|^/(?:[\w-]+/)*rss/?$", "forms, previews and feeds"
            ),
            Rule("author", r"^/author/", "the same posts, by author", "https://ghost.org/docs/themes/contexts/author/"),
        ),
    ),
    Software(
        "serendipity",
        "Serendipity",
        "https://docs.s9y.org/docs/developers/index.html",
        (
            Rule(
                "view",
                rf"/(?:feeds|plugin|authors|search|serendipity_admin)/|/(?:rss|comment|exit|wfwcomment|serendipity_admin\w*)\.php|{Q}serendipity(?:%5b|\[)",
                "feeds, forms, searches and calendars",
            ),
            Rule("date", r"/archives/(?:19|20)\d\d(?:/|\.html|\b)|/archive(?:/|$)", "the same posts, by date"),
            Rule("tag", r"/plugin/tag/|/tag/", "the same posts, by tag"),
        ),
    ),
    Software(
        "plone",
        "Plone",
        "https://github.com/plone/Products.CMFPlone/blob/master/Products/CMFPlone/interfaces/controlpanel.py",
        (
            Rule(
                "form",
                r"/(?:@@)?(?:sendto_form|folder_factories|folder_summary_view|folder_contents|login(?:_form)?|mail_password_form|search(?:_rss)?|search_form|RSS|rss\.xml|thumbnail_view|atct_album_view|accessibility-info|contact-info|sharing|historyview|author/\w+|register|personalize_form|require_login|@@?search)(?:\?|/|$)",
                "forms and second views that each content has",
            ),
        ),
    ),
)

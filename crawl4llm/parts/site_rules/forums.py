"""Rules for forums. Boards and topics stay, page by page; other URLs of a topic, for example at one of its posts, do
not."""

from __future__ import annotations

from typing import Final

from crawl4llm.parts.site_rules.table import Q, Rule, Software

SOFTWARE: Final = (
    Software(
        "phpbb",
        "phpBB",
        "https://www.phpbb.com/support/docs/en/3.3/ug/",
        (
            Rule(
                "form",
                r"/(?:ucp|mcp|posting|memberlist|search|viewonline|report|cron|faq|download/file|adm/index)\.php|/app\.php/(?:help|user|feed|report|post/\d+/report|cron)|/(?:user|feed|help)(?:/|$)",
                "forms, members, searches, feeds",
            ),
            Rule(
                "post",
                rf"/viewtopic\.php.*{Q}p=\d+|{Q}view=(?:print|next|previous|unread|viewpoll|bookmark)|/post\d+\.html",
                "the same topic, at a post, or for print",
            ),
            Rule(
                "order",
                rf"{Q}(?:s[tkd]|hilit|sid|mark|watch|unwatch|bookmark|e|hash|vote_id|style)=",
                "sort orders, marked words and sessions",
            ),
        ),
    ),
    Software(
        "mybb",
        "MyBB",
        "https://docs.mybb.com/1.8/",
        (
            Rule(
                "form",
                r"/(?:newthread|newreply|editpost|private|usercp2?|modcp|member|memberlist|search|report|reputation|ratethread"
                r"|polls|online|stats|misc|sendthread|moderation|warnings|managegroup|showteam|contact|captcha|attachment|css|task)\.php",
                "forms, members, searches",
                "https://github.com/mybb/mybb/tree/feature",
            ),
            Rule(
                "calendar",
                r"/calendar\.php|/calendar-\d+",
                "the calendar, day by day",
                "https://docs.mybb.com/1.8/administration/calendars/",
            ),
            Rule(
                "archive",
                r"/archive/index\.php|/printthread\.php|/syndication\.php",
                "the same topics, in plain, for print and as feeds",
                "https://github.com/mybb/mybb/tree/feature/archive",
            ),
            Rule(
                "post",
                rf"/showthread\.php.*(?:{Q}(?:pid|action|mode)=|{Q}(?:nextnewest|nextoldest|highlight)\b)"
                r"|/thread-\d+-(?:post-|lastpost|newpost|nextnewest|nextoldest)|/post-\d+(?:-|\.html)",
                "the same topic, at a post, or as a tree",
            ),
            Rule(
                "order", rf"{Q}(?:datecut|sortby|order|prefix|my_post_key|sid|highlight)=", "sort orders and sessions"
            ),
            Rule("user", r"/user-\d+\.html|/reputation-\d+", "members"),
        ),
    ),
    Software(
        "vbulletin",
        "vBulletin",
        "https://forum.vbulletin.com/help",
        (
            Rule(
                "form",
                r"/(?:newthread|newreply|editpost|private|profile|usercp|usernote|member|memberlist|search|report|reputation|threadrate"
                r"|poll|online|misc|sendmessage|subscription|login|register|joinrequests|ajax|cron|faq|infraction|inlinemod"
                r"|moderator|postings|showgroups|attachment|image|external|converse|blog_(?:search|report|post|usercp)|album|group|tags)\.php",
                "forms, members, searches",
            ),
            Rule("calendar", r"/calendar\.php", "the calendar, day by day"),
            Rule("archive", r"/archive/index\.php|/printthread\.php", "the same topics, in plain and for print"),
            Rule(
                "post",
                rf"/showpost\.php|/showthread\.php.*(?:{Q}(?:p|goto|mode|highlight|post)=)|{Q}viewfull=\w|/(?:members?|search|online|activity)(?:/|$)",
                "the same topic, at a post; members",
            ),
            Rule(
                "order",
                rf"{Q}(?:daysprune|sort|sortfield|prefixid|s|contenttype|filter_\w+)=",
                "sort orders and sessions",
            ),
        ),
    ),
    Software(
        "xenforo",
        "XenForo",
        "https://xenforo.com/robots.txt",
        (
            Rule(
                "form",
                r"(?:^|/|\?)(?:account|attachments|goto|login|lost-password|register|search|members|misc|online|whats-new|find-new|recent-activity"
                r"|help|conversations|direct-messages|watched|logout|admin\.php|tags|two-step|logins|posts|profile-posts|search-forums|featured)(?:/|\.|$|\?)",
                "forms, members, searches, news, and posts by themselves",
            ),
            Rule(
                "post",
                r"/threads/[^/]+/(?:post-\d+|latest|unread|reply|preview|report|watch|latest-activity)|/(?:poll|ratings)/(?:results|vote)",
                "the same topic, at a post",
            ),
            Rule(
                "order",
                rf"{Q}(?:order|direction|last_days|prefix_id\[?\d*\]?|no_date_limit|starter_id|thread_type|_xfToken|t)=|\.rss$|/index\.rss",
                "sort orders, filters and feeds",
            ),
        ),
    ),
    Software(
        "smf",
        "SMF",
        "https://wiki.simplemachines.org/smf/Actions",
        (
            Rule("action", rf"{Q}action=", "forms, members, searches, prints: boards and topics have no action"),
            Rule(
                "post",
                rf"{Q}topic=\d+\.(?:msg\d+|new|from\d+)|{Q}(?:prev_next|all|imode|wap2?|theme|PHPSESSID)\b|/index\.php/topic,\d+\.(?:msg\d+|new)|/msg\d+",
                "the same topic, at a post",
            ),
            Rule("order", rf"{Q}(?:sort|desc|nowap)\b", "sort orders"),
        ),
    ),
    Software(
        "fluxbb",
        "FluxBB and PunBB",
        "https://fluxbb.org/docs/",
        (
            Rule(
                "form",
                r"/(?:post|edit|delete|profile|search|misc|extern|login|register|userlist|moderate|admin_\w+|help)\.php|/(?:search|users?|login|register|new/reply|feed)(?:/|$)",
                "forms, members, searches, feeds",
            ),
            Rule("post", rf"/viewtopic\.php.*{Q}(?:pid|action)=|/post/\d+", "the same topic, at a post"),
        ),
    ),
    Software(
        "discourse",
        "Discourse",
        "https://github.com/discourse/discourse/blob/main/app/controllers/robots_txt_controller.rb",
        (
            Rule(
                "form",
                r"^/(?:admin|auth|email|search|session|user-api-key|badges|my|g|u|users|posts|raw|login|signup|notifications|new-topic|new-message|groups|invites|review)(?:/|\.|\?|$)|\.(?:rss|json)(?:\?|$)|^/tag/.*/l(?:/|$)",
                "forms, members, searches, feeds",
            ),
            Rule(
                "post",
                r"^/t/[^/]+/\d+/\d+|^/t/\d+/\d+|^/p/\d+",
                "the same topic, at a post",
                "https://meta.discourse.org/t/urls-and-permalinks/",
            ),
            Rule(
                "order",
                rf"{Q}(?:order|ascending|solved|status|u|username_filters|filter|print|preview_theme_id|_escaped_fragment_|max_posts|min_posts|before|bumped_before)=|/print$",
                "sort orders, filters and prints",
            ),
            Rule(
                "list",
                r"^/(?:(?:c/.*|tag/.*)/l/)?(?:top|new|unread|unseen|posted|bookmarks|hot)(?:/|\?|$)",
                "the same topics, in another order: latest and categories lead to all of them",
            ),
        ),
    ),
    Software(
        "flarum",
        "Flarum",
        "https://docs.flarum.org/extend/routes/",
        (
            Rule(
                "form",
                rf"^/(?:u|settings|notifications|api|admin|login|register|confirm|reset|atom)(?:/|$)|{Q}(?:q|sort|filter\[\w+\])=|{Q}filter",
                "forms, members, searches, sort orders",
            ),
            Rule("post", r"^/d/[^/]+/\d+", "the same topic, at a post"),
        ),
    ),
    Software(
        "invision",
        "Invision Community",
        "https://invisioncommunity.com/robots.txt (its default robots.txt)",
        (
            Rule(
                "form",
                r"^/(?:startTopic|discover|markallread|staff|cookies?|online|leaderboard|search|tags|register|lostpassword|login|logout|profile|contact|messenger|settings|notifications)(?:/|$)",
                "pages without content of their own; members",
            ),
            Rule(
                "view",
                rf"{Q}(?:advancedSearchForm|sort(?:by|direction|_key|_order)|filter|tab|do|ref|forumId|controller|csrfKey|view|listResort|changeFilters)=|\.xml/?$|{Q}_fromLogin",
                "sort orders, and the same topic, at a post",
            ),
        ),
    ),
    Software(
        "machina",
        "django-machina",
        "https://github.com/ellmetha/django-machina/blob/main/machina/apps/forum_conversation/urls.py",
        (
            Rule(
                "form",
                r"/(?:topic/create|post/create|update|delete|quote|vote|lock|unlock|move|pin|unpin|subscribe|unsubscribe|topic/\d+/(?:lock|delete|move)|approve|disapprove|attachment)(?:/|$)|/(?:member|moderation|search|feeds|mark|accounts|admin)/",
                "forms, members, searches, feeds",
            ),
            Rule("post", rf"{Q}post=\d+", "the same topic, at a post"),
        ),
    ),
    Software(
        "spirit",
        "Spirit",
        "https://github.com/nitely/Spirit/blob/main/spirit/urls.py",
        (
            Rule(
                "form",
                r"^/(?:user|search|st/admin|comment|topic/(?:publish|bookmark|favorite|notification|poll|moderate|private|unread|update))(?:/|$)|/(?:publish|update|delete|vote|close|lock|unlock|pin|unpin|like|flag|move)/",
                "forms, members, searches, and comments by themselves",
            ),
            Rule("post", rf"{Q}comment=\d+", "the same topic, at a comment"),
        ),
    ),
)

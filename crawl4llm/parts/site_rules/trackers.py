"""Rules for trackers of bugs and tasks. Tickets stay, and lists of them; changes, forms and endless queries do not."""

from __future__ import annotations

from typing import Final

from crawl4llm.parts.site_rules.table import Q, Rule, Software

SOFTWARE: Final = (
    Software(
        "trac",
        "Trac",
        "https://trac.edgewall.org/wiki/TracGuide",
        (
            Rule(
                "form",
                r"^/(?:login|logout|register|reset_password|prefs|newticket|newblog|search|admin|about|verify_email|xmlrpc|rpc|chrome)(?:/|\?|$)",
                "forms, logins and searches",
            ),
            Rule(
                "timeline",
                r"^/timeline\?",
                "what changed, day by day without end",
                "https://trac.edgewall.org/wiki/TracTimeline",
            ),
            Rule(
                "query",
                r"^/query\?(?:.*&)?(?:(?:desc|groupdesc)=1|format=|row=)|^/report/\d*\?(?:.*&)?(?:sort|format|USER)=",
                "lists of tickets in other orders and formats",
                "https://trac.edgewall.org/wiki/TracQuery",
            ),
            Rule(
                "change",
                r"^/(?:changeset|log|export|raw-attachment|zip-attachment|diff|browser/.*[?&](?:rev|annotate|format|order|desc|marks)=|browser\?)",
                "diffs, logs and old revisions of files",
                "https://trac.edgewall.org/wiki/TracChangeset",
            ),
            Rule(
                "revision",
                rf"{Q}(?:action|version|old_version|format|replyto|cnum_edit|cversion|_\w+|noscript|history)=",
                "histories, differences, edit forms, raw sources and feeds",
                "https://trac.edgewall.org/wiki/TracWiki",
            ),
        ),
    ),
    Software(
        "roundup",
        "Roundup",
        "https://roundup.sourceforge.io/docs/user_guide.html",
        (
            Rule(
                "form",
                rf"{Q}[@:](?:template|action|history|contexttemplate)=(?!index\b)|^/(?:user|keyword|query|file|priority|status)\d*(?:\?|$|/)|^/(?:rest|xmlrpc|@@file)",
                "forms, members and files",
                "https://roundup.sourceforge.io/docs/reference.html",
            ),
            Rule(
                "message",
                r"^/msg\d+",
                "a message by itself, which its issue shows",
                "https://roundup.sourceforge.io/docs/user_guide.html",
            ),
            Rule("query", rf"{Q}[@:]search_text=[^&]", "searches"),
        ),
    ),
    Software(
        "bugzilla",
        "Bugzilla",
        "https://github.com/bugzilla/bugzilla/blob/main/robots.txt",
        (
            Rule(
                "form",
                r"/(?!(?:index|show_bug|describecomponents|describekeywords|page|buglist)\.cgi)\w+\.cgi",
                "forms, charts, histories and files: its robots.txt allows but a few scripts",
            ),
            Rule(
                "view",
                rf"/show_bug\.cgi.*(?:{Q}(?:ctype|format)=|[?&]id=\d+&id=)|/buglist\.cgi.*{Q}(?:ctype|order|columnlist|format|list_id)=",
                "other forms of a bug, and sort orders",
            ),
        ),
    ),
    Software(
        "redmine",
        "Redmine",
        "https://github.com/redmine/redmine/blob/master/app/views/welcome/robots.text.erb",
        (
            Rule(
                "form",
                r"^/(?:login|logout|account|search|my|users|admin|activity|time_entries)(?:/|\?|$)|/(?:new|edit|search|time_entries|activity|gantt|calendar|copy|annotate|diff|history|watchers)(?:/|\.|\?|$)|/wiki/[^/]+/(?:diff|annotate|history|\d+)(?:/|\?|$)",
                "forms, activities, charts and histories",
            ),
            Rule("repository", r"/repository(?:/|\?|$)", "diffs and revisions"),
            Rule(
                "view",
                rf"{Q}(?:sort|set_filter|query_id|group_by|version|c\[\]|f\[\]|op|v|journals|per_page|tab|utf8|tracker_id|fixed_version_id|back_url|parent_issue_id)(?:\[[^\]]*\])*=|\.(?:pdf|atom|csv|xml|json|txt)(?:\?|$)",
                "sort orders, filters, prints and feeds",
            ),
        ),
    ),
    Software(
        "mantis",
        "MantisBT",
        "https://mantisbt.org/docs/master/en-US/Developers_Guide/html/",
        (
            Rule(
                "form",
                r"/(?:login\w*|signup\w*|lost_pwd\w*|account_\w+|bug_(?:report|update|change|action|reminder|relationship\w*|revision\w*|history\w*|monitor\w*|clone\w*|stick)\w*|bugnote_\w+|view_filters\w*|view_user\w*|manage_\w+|print_\w+|csv_\w+|excel_\w+|issues_rss|news_rss|permalink\w*|query_\w+|return_dynamic_filters|jump_to_bug|set_project|file_download|billing\w*|summary\w*|plugin|verify|wiki|search|timeline\w*)\.php",
                "forms, prints, feeds and members",
            ),
            Rule(
                "order",
                rf"{Q}(?:sort|dir|sort_add|dir_add|history|type|set_project_id|print|highlight|nbn)=",
                "sort orders",
            ),
        ),
    ),
    Software(
        "jira",
        "Jira",
        "https://jira.atlassian.com/robots.txt (its default robots.txt)",
        (
            Rule(
                "form",
                r"/(?:sr|si|charts|login\.jsp|logout|plugins|rest|activity|s|secure/(?!(?:BrowseProjects?|Dashboard)\b)\w+!?\w*\.jspa)(?:/|\?|$)|/secure/\w+\.jspa",
                "forms, charts, exports and searches",
            ),
            Rule(
                "view",
                rf"/browse/[^?]*\?.*(?:page|focusedCommentId|actionOrder|attachmentSortBy|subTaskView|devStatusDetailDialog|os_username|selectedTab|showAll)=|{Q}jql=|{Q}filter=",
                "other tabs of a ticket, and searches",
            ),
        ),
    ),
)

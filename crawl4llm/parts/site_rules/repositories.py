"""Rules for browsers of repositories. The files of the newest revision stay; logs, diffs and old revisions do not."""

from __future__ import annotations

from typing import Final

from crawl4llm.parts.site_rules.table import Q, Rule, Software

SOFTWARE: Final = (
    Software(
        "gitweb",
        "gitweb",
        "https://git-scm.com/docs/gitweb",
        (
            Rule(
                "action",
                rf"{Q}a=(?:blobdiff\w*|blob_plain|blame\w*|commit\w*|snapshot|search\w*|log|shortlog|history|patch|patches|rss|atom|opml|project_index|object|tags?|heads?|forks|remotes)\b",
                "logs, diffs, plain files, feeds and searches",
            ),
            Rule(
                "path",
                r"\.git/(?:blobdiff\w*|blob_plain|blame\w*|commit\w*|snapshot|search\w*|log|shortlog|history|patch|patches|rss|atom|object|tags?|heads?|forks|remotes)(?:/|$|\?)",
                "the same in the path",
            ),
            Rule(
                "revision",
                rf"{Q}(?:hb|hpb|hp|fp)=(?:[0-9a-f]{{40,64}}|.*{Q}(?:hp|hpb)=)|{Q}a=tree.*{Q}h=[0-9a-f]{{40,64}}(?!.*hb=HEAD)|{Q}(?:opt|pg|st|s|sr)=",
                "old revisions of files",
            ),
        ),
    ),
    Software(
        "cgit",
        "cgit",
        "https://git.zx2c4.com/cgit/tree/cgitrc.5.txt",
        (
            Rule(
                "action",
                r"/(?:log|diff|rawdiff|commit|patch|snapshot|plain|blame|stats|atom|tag|refs)(?:/|\?|$)",
                "logs, diffs, plain files and feeds",
            ),
            Rule(
                "revision",
                rf"{Q}(?:id2?|h|ofs|ss|dt|q[qt]?|follow|showmsg|context|ignorews|s|period|all)=",
                "old revisions, branches, searches and sort orders",
            ),
        ),
    ),
    Software(
        "gitlab",
        "GitLab",
        "https://gitlab.com/gitlab-org/gitlab/-/blob/master/public/robots.txt",
        (
            Rule(
                "form",
                r"^/(?:autocomplete|search|api|admin|profile|dashboard|users|help|projects/new|groups/new|-/(?:profile|user_settings|snippets/new)|explore/snippets|oauth)(?:/|\?|$)|/(?:new|edit)(?:/|\?|$)",
                "forms, members and searches",
            ),
            Rule(
                "change",
                r"/(?:-/)?(?:raw|blame|commits?|compare|network|graphs?|archive|repository/archive\w*|activity|diffs|pipelines|jobs|branches|tags|forks|starrers|project_members|group_members|deploy_keys|hooks|services|protected_branches|uploads|find_file|refs|environments|insights|value_stream_analytics)(?:/|\?|$)|/(?:-/)?(?:tree|blob)/[0-9a-f]{40}(?:/|$)",
                "logs, diffs, plain files and charts",
            ),
            Rule(
                "view",
                rf"{Q}(?:sort|label_name\[?\]?|author_username|assignee_username|milestone_title|search|utf8|format|ref_type|page_token)=|\.(?:atom|patch|diff|ics|git)(?:\?|$)",
                "sort orders, filters and feeds",
            ),
        ),
    ),
    Software(
        "gitea",
        "Gitea and Forgejo",
        "https://docs.gitea.com/administration/search-engines-indexation",
        (
            Rule(
                "form",
                r"^/(?:user|login|admin|api|explore/(?:users|organizations)|notifications)(?:/|\?|$)|/(?:settings|_edit|_new|issues/new|compare|fork)(?:/|\?|$)",
                "forms and members",
            ),
            Rule(
                "change",
                r"^/[^/]+/[^/]+/(?:commits?|blame|raw|render|archive|activity|graph|stars|watchers|forks|media|rss|atom|branches|tags|actions|projects|search|find|src/commit|src/tag|pulls/\d+/(?:files|commits))(?:/|\?|$)",
                "logs, diffs, plain files, charts and old revisions",
            ),
            Rule(
                "view",
                rf"{Q}(?:sort|q|labels|milestone|assignee|poster|project|fuzzy|display|tab|language|topic|lang|action)=(?!0\b)[^&]"
                r"|[?&]type=(?!all\b)[^&]|\.(?:rss|atom|patch|diff|git)(?:\?|$)",
                "sort orders, filters and feeds",
            ),
        ),
    ),
    Software(
        "viewvc",
        "ViewVC",
        "https://github.com/viewvc/viewvc/blob/master/docs/url-reference.html",
        (
            Rule(
                "view",
                rf"{Q}(?:view=(?:annotate|diff|log|rev|patch|tar|co|query\w*|roots|graph\w*)|annotate=|r[12]=|tr[12]=|p[12]=|diff_format=|rev(?:ision)?=|pathrev=|only_with_tag=|sort(?:by|dir)=|logsort=|hideattic=|log_pagestart=|content-type=|hidecvsroot=|search=|limit_changes=)|\*checkout\*/|/\?root=.*&(?:rev)",
                "logs, diffs, plain files, old revisions and sort orders",
            ),
        ),
    ),
    Software(
        "hgweb",
        "hgweb",
        "https://repo.mercurial-scm.org/hg/file/tip/mercurial/hgweb/webcommands.py",
        (
            Rule(
                "action",
                r"/(?:rev|changeset|diff|comparison|annotate|raw-\w+|log|filelog|shortlog|changelog|graph|archive|rss-log|atom-log|tags|branches|bookmarks|filediff|help)(?:/|\?|$)",
                "logs, diffs and plain files",
            ),
            Rule(
                "revision",
                rf"/file/[0-9a-f]{{12,40}}(?:/|$)|{Q}(?:style|rev|revcount|sort|cmd|node|linenos)=",
                "old revisions and searches",
            ),
        ),
    ),
)

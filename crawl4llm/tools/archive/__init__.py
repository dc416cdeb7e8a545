"""A crawl's archive as a dataset that is handed on: finished, checked, repaired, copied, and purged of who opted out.

``folder`` finds its files, ``reading`` takes a WARC file apart, ``facts`` is a database of what all files hold,
``survey`` fills it in parallel, ``checking`` and ``checking_index`` compare it with everything else. What is changed is
changed by ``changes``, all or nothing.
"""

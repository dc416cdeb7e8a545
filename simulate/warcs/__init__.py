"""WARC collections as a corpus: any writer's archive files, and the logs of failures of live crawls beside them.

``corpus`` answers a simulated crawl; ``files`` lists the files of a collection. The index is built by ``index_build``:
``scan`` finds the documents of one file, ``part`` keeps them, ``columns`` unites the parts into what ``index`` opens.
Records are read by :mod:`crawl4llm.warc.reader`.
"""

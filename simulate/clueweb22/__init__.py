"""ClueWeb22: pages, links and a URL index in the dataset's on-disk format.

``corpus``: the corpus that crawls and commands look pages up in.
``records``: ids, places and contents of its records. ``files``: whether its files are whole, and their writer.
``url_index``: finds documents by URL. ``opt_outs``: what pages said of their uses.
"""

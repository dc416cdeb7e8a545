"""ClueWeb22: pages, links and a URL index in the dataset's on-disk format.

``corpus``: the corpus that crawls and commands look pages up in.
``records``: the ids of its records, where they lie, and what is in them. ``tree_files``: whether its files are whole.
``tree_writer``: writes such a tree. ``url_index``: finds documents by URL. ``opt_outs``: what pages said of their uses.
"""

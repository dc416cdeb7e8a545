"""ClueWeb22: pages, links and a URL index in the dataset's on-disk format.

``corpus``: the corpus that crawls and commands look pages up in.
``layout``: names, paths and ids of the file tree. ``record_files``: its data files, and their records by number.
``record_parser``: from the bytes of a record to text, links and HTML. ``tree_writer``: writes such a tree.
``url_index``: finds documents by URL.
"""

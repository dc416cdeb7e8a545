"""The demo web: a generated ClueWeb22 tree and a model for it, for users without either. The door is ``demo``.

- ``words``: the words of the texts; ``text``: the content of a page, as text and as HTML
- ``sites``: the sites and their pages, and how good they are; ``web``: the links between them
- ``write``: the files, made by several processes, and the fastText model, trained on a web of its own
- ``demo``: the place of a demo web, and its build
"""

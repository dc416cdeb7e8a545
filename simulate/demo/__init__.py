"""The demo web: a generated ClueWeb22 tree and a model for it, for users without either. The door is ``demo``.

- ``text``: pages, the words of their texts, and their content as text and as HTML
- ``web``: the sites and their pages, how good they are, and the links between them
- ``write``: the files, made by several processes, and the fastText model, trained on a web of its own
- ``demo``: the place of a demo web, and its build
"""

"""Training an influence model: a fastText classifier that tells good texts from ordinary ones, by DCLM's recipe.

``train`` goes through the steps, one module each: ``sources`` and what it reads with (``text_files``, ``page_texts``)
give texts, ``examples`` makes training and held-out examples of them, ``fit`` runs fastText, ``measures`` compares the
model's scores with the truth, ``card`` writes down what came of it, ``folder`` puts all in place at once.
"""

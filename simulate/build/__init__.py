"""Build: any corpus written as a file tree in ClueWeb22 format.

``tree``: the whole of a build, its processes, and how it goes on after a kill. ``plan``: which page gets which id.
``passes``: pages are read, then written, then their inlinks. ``centrality``: harmonic centrality of a corpus's pages.
"""

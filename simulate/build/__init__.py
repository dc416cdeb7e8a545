"""Build: any corpus written as a file tree in ClueWeb22 format.

``tree``: the whole of a build, its processes, and how it goes on after a kill. ``plan``: which page gets which id.
``chunks``: the first pass, which reads pages. ``data_files``: the second and third, which write them and their links.
``centrality``: harmonic centrality of a corpus's pages.
"""

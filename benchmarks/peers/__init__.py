"""Public test suites of other crawlers, run against this project: ``python -m benchmarks.peers FOLDER``.

Nothing of them is part of the project: the user names a folder with their checkouts. README.md here has each difference
that remains, with its reason.
"""

"""Tools: commands that work on finished things, one folder per command, with the command's name.

``opened_run`` and ``simulating`` are the Python API; ``opened_run`` and ``_merging`` also make a run folder of a crawl
by several workers, for all tools. ``_action`` is the frame of commands that have actions; ``_fit`` runs fastText. Tools
do not import each other, with these exceptions: ``archive`` uses ``export``; ``export``,
``trainscorer`` and ``corpus bound`` use ``evaluate``.
"""

"""Tools: what works on finished things, one folder a command, with the command's name.

``opened_run`` and ``simulating`` are the Python API. ``_action`` is the frame of commands that have actions;
``_storage_view`` and ``_merging`` make a run folder of a crawl by several workers, for all of them. A tool imports no
other one, but for these: ``archive`` uses ``export``, and ``export`` and ``trainscorer`` use ``evaluate``.
"""

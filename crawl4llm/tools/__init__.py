"""Tools: what works on finished things, one folder a command.

``archive``, ``corpus``, ``evaluate``, ``explain``, ``export``, ``frontier`` and ``trainscorer`` are each behind the
command of that name; ``_action`` is what commands of several actions share. Tools do not import each other, but for
those that build on another one's work: an archive's purge on ``export``, ``export`` and ``trainscorer`` on
``evaluate``.
"""

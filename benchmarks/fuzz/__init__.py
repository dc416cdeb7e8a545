"""Fuzzing of the readers of what comes from outside: ``python -m benchmarks.fuzz``.

- ``target``: what a target is. ``web``, ``archives``, ``folders``, ``jobdirs`` and
  ``storages`` have the targets.
- ``mutators``: changes to inputs; of JSON by value, so that they come behind the parser.
- ``watching``: runs a reader on one input, and tells what it does that it must not.
- ``guards``: the audit hook that sees files, processes, sockets and imports.
- ``shared_state``: what a child is at, in memory that its parent reads when the child has crashed.
- ``child``: one target in a process, by Atheris or without.
- ``__main__``: a child for each target, and the table.

:mod:`benchmarks.mutations` attacks whole folders by whole commands, a few a second. Here one function reads one input,
thousands of times a second.
"""

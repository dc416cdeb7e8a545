"""Tools: what works on finished things, one folder a command."""

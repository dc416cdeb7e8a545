"""The software of the web: a module each, with the functions of :class:`benchmarks.websoftware.site.Software`."""

"""Scripts that fill software of the package index, each run by the Python of its environment."""

"""Build: a corpus in ClueWeb22 format, made of WARC files."""

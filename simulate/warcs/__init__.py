"""WARC collections as a corpus."""

"""ClueWeb22: pages, links and the URL index in its on-disk format."""

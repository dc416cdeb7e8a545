"""The live web: what a crawl over the network needs that a simulation does not."""

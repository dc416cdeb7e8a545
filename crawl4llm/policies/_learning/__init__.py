"""Learning, while a crawl runs, which links lead to pages of high influence (the policy ``link``)."""

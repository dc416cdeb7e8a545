"""A crawl that survives its process: what JOBDIR holds, and how it is committed, checked and taken up again."""

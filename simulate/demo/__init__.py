"""The parts of the demo web: words, text, sites, pages, links, HTML, model, traits. Start at ``demo.py``."""

"""Evaluation of finished crawls: what their pages are worth, in figures and tables, and the report that shows them."""

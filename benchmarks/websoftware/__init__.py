"""A web of real software on loopback, and what crawlers bring home of it."""

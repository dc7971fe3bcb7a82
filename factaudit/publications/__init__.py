"""Published data by name: which files there are, at which commit, under which licence, and how they
are fetched."""

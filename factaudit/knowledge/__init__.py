"""Knowledge sources: pages cut into passages, looked up by title and searched within a page."""

"""Published data by name: the files, their commits and licences, and how they are fetched."""

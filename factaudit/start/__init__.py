"""The first hour: an experiment on data that ships (``demo``), a YAML for the user's own files, its
JSON schema."""

"""How do users name things? YAML with its lines, the paths in it, and ``NAME[:key=value,...]``."""

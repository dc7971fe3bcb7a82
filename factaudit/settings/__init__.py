"""How do users write settings? As YAML, with paths in it, and as ``NAME[:key=value,...]``."""

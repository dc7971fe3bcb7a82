"""How does a YAML become a run folder? `inputs` reads the tables, `run` leads through the work, and
`folder` writes the results."""

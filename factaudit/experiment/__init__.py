"""From a YAML to a run folder: `inputs` reads the tables, `folder` writes, `run` leads from one to
the other."""

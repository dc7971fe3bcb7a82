"""What does a reader see of a run? Tables, figures and one HTML file, made from ``results.json``
alone."""

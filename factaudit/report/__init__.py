"""The report of a run: tables, figures, one HTML file and Markdown, made from ``results.json`` alone."""

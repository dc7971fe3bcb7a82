"""Statistics of arrays, usable alone: nothing here knows claims, evaluators or rows. One file for
each method.

Arguments and results are numpy arrays; docstrings give their shapes: n units, C clusters, k rows of
counts, G groups, S systems, B or b replicates. A figure that is undefined is NaN.
"""

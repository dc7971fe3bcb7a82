"""Claims and verdicts as arrays: one file for each kind of array."""

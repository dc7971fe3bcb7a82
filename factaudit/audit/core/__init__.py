"""What audits compute on: claims and verdicts as arrays, counts, intervals, groups and rows."""

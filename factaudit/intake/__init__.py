"""Tables as users have them: read in any shape, profiled, and mapped to claims and verdicts."""

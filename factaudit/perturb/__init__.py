"""Minimal pairs: a claim and its variant, in which one thing was changed by a rule, without any
model."""

"""Figures that a paper could print, as matplotlib figures with axes. matplotlib is slow to import:
import this late."""

"""Figures that a paper could print, as matplotlib figures with axes.

Importing matplotlib is slow, so import this package only when something is drawn.
"""

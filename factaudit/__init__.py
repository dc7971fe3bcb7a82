"""factaudit: how far can a factuality metric be trusted?"""

__version__ = "0.1.0"

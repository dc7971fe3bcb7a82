"""D-FActScore: facts that are true apart and false together (MF: Chiang & Lee 2024)."""

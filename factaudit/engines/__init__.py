"""How do texts become claims and verdicts? FActScore and D-FActScore."""

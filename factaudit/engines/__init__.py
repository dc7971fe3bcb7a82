"""What makes claims and verdicts of texts: FActScore and D-FActScore."""

"""What is the error rate of a system, by few labels? Sample, label, estimate; and triage."""

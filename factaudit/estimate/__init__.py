"""The error rate of a system from few labels: plan, sample, label, estimate."""

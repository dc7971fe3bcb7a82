"""What do all audits share? Declarations, rows, limits, significance and sentences."""

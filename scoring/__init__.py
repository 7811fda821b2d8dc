"""Scores the answers of code models: extraction, execution, pass@k."""

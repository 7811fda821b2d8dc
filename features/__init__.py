"""Features of a method: documentation, syntax and software metrics, computed on its own text."""

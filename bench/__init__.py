"""Benchmarks: the peer and us on the same input in one process tree."""

"""Orchestration: the only package that knows Prefect, and the command line."""

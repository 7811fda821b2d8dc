"""Executes mined code, and only here: sandbox backends, environments, coverage, mocks and their verdicts."""

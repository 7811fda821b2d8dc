"""Tests of the release folder."""

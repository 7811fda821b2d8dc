"""Tests of the features."""

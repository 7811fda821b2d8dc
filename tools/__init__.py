"""Developers' scripts: generated files and structural checks. Not part of the product."""

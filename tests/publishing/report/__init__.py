"""The page of a release and its reviews."""

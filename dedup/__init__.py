"""Removal of exact and near duplicates at Jaccard 0.7 over BPE token sets."""

"""The release folder: testbeds as Parquet, card, manifest, exclusions and funnel."""

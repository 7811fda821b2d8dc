"""Tables on disk: atomic Parquet, the ledger of finished work, DuckDB views and reports."""

"""The release as one self-contained HTML page, and the marks that reviewers give its rows."""

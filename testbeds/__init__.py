"""One module per testbed: which rows it takes and the columns it adds."""

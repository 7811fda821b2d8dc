"""Types every stage shares: rows, tasks, configuration, Arrow schemas and errors. Imports nothing of ours."""

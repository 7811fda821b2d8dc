"""From repositories to rows: clones, commits of the window, changed files, methods and their novelty."""

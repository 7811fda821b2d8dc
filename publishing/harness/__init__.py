"""Task files for lm-evaluation-harness and Inspect: prompts, the code they run, and how they get into a release."""

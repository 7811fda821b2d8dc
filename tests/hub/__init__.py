"""A loopback Hub for tests, and by `python -m tests.hub` for trying out `postquem release push`."""

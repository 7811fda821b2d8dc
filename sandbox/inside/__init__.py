"""What runs inside a sandbox beside the tested code: standard library and pytest alone, for Python 3.9 and newer.

`supervisor` is the command; it starts `runner` in a process of its own, which is pytest with our plugin. Only the
supervisor writes to the command's standard output, and only what the runner signed.
"""

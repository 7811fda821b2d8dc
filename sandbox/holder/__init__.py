"""The process that owns a sandbox: imports the standard library only, so that it starts quickly and alone."""

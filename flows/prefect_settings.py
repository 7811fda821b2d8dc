"""Prefect for a run without account, server or telemetry that leaves the user's own profile alone."""

import os
from pathlib import Path

from flows.stopping import end_servers
from warehouse.lock import lock_workspace, open_workspace

# The ephemeral server's own limit of 20 s failed under load (docs/adr/0004).
_STARTUP_SECONDS = "300"


def isolate_prefect(workspace: Path) -> None:
    """Set Prefect's environment; call before the first import of prefect.

    Everything Prefect stores goes to `<workspace>/.prefect`. A `PREFECT_API_URL` in the environment is respected:
    who sets it wants to see the run on that server. ConfigError when another run uses the workspace.
    """
    home = workspace.resolve() / ".prefect"
    os.environ["PREFECT_HOME"] = str(home)
    os.environ["PREFECT_PROFILES_PATH"] = str(home / "profiles.toml")
    os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
    os.environ["DO_NOT_TRACK"] = "1"
    os.environ["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] = _STARTUP_SECONDS
    if "PREFECT_API_URL" not in os.environ:
        os.environ["PREFECT_SERVER_EPHEMERAL_ENABLED"] = "true"
        # Errors are printed by our own command; nobody can look at the log of a server that ends with the run.
        os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
        os.environ.setdefault("PREFECT_LOGGING_TO_API_ENABLED", "false")
    folders = open_workspace(workspace)
    with lock_workspace(folders):  # so a server of this workspace belongs to a run that was killed
        end_servers(home)

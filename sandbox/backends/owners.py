"""Names that tell whose a folder, control group or container is, so that those of killed runs can be removed."""

import os
import secrets
from pathlib import Path

PREFIX = "postquem-sandbox-"


def _started(process: int) -> str:
    """Return when a process started, in clock ticks since boot (proc(5), stat, field 22); empty when it is gone."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return status.rpartition(")")[2].split()[19]


def _process_namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def owned_name() -> str:
    """Return a new name that says which process it belongs to."""
    process = os.getpid()
    return f"{PREFIX}{_process_namespace()}-{process}-{_started(process)}-{secrets.token_hex(4)}"


def is_orphan(name: str) -> bool:
    """Tell whether the process that a name belongs to is gone; no for names of others and of other containers."""
    parts = name.removeprefix(PREFIX).split("-")
    if not name.startswith(PREFIX) or len(parts) != 4:
        return False
    namespace, process, started, _ = parts
    return namespace == _process_namespace() and process.isdecimal() and _started(int(process)) != started

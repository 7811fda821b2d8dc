"""Run a Hub on this machine that forgets everything when it ends: python -m tests.hub [PORT]."""

import sys
import threading
from contextlib import suppress

from tests.hub.server import running_hub

if __name__ == "__main__":
    with running_hub(port=int(sys.argv[1]) if len(sys.argv) > 1 else 8_000) as hub:
        print(f"export HF_ENDPOINT={hub.url} HF_TOKEN=hf_writer HF_HUB_DISABLE_XET=1", flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()

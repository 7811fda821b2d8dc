"""A push in a process of its own, which tests kill: python -m tests.hub.child FOLDER REPO."""

import sys
from pathlib import Path

from publishing.hub import HubRepository
from publishing.push import push
from publishing.release_files import read_release_files

if __name__ == "__main__":
    folder, repo = sys.argv[1:]
    print(push(read_release_files(Path(folder)), HubRepository(repo), private=False, dry_run=False).status)

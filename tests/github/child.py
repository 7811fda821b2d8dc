"""A discovery in a process of its own, which tests kill: python -m tests.github.child API_URL FOLDER STARS."""

import sys
from pathlib import Path

from miners.discovery import Service, discover
from miners.github import GitHubClient
from schemas.search import SearchConfig
from tests.github.server import FakeClock
from tests.github.support import STARTED
from warehouse.journal import Journal


def main(api_url: str, folder: str, stars: str) -> None:
    """Discover and print what was found, one repository a line."""
    config = SearchConfig(api_url=api_url, stars=stars)
    client = GitHubClient(config, ["t"], lambda text: None, FakeClock())
    found = discover(Service(client, Journal(Path(folder)), config), STARTED)
    print(*(row.repo_id for row in found.repositories), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

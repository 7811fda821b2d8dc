"""`postquem release` as a user types it."""

from click.testing import CliRunner

from flows.cli import cli


def test_the_commands_of_releases_stand_in_one_group() -> None:
    shown = CliRunner().invoke(cli, ["release", "--help"]).output
    assert [line.split()[0] for line in shown.split("Commands:\n")[1].splitlines()] == ["build"]

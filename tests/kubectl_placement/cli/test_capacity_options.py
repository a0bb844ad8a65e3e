"""Options of `capacity` that contradict each other."""

from click.testing import CliRunner

from kubectl_placement.cli.capacity import command


def test_teams_are_not_read_from_workers() -> None:
    done = CliRunner().invoke(command, ["--by", "team", "--workers"])
    assert done.exit_code == 2
    assert "leave out --workers with --by team" in done.stderr

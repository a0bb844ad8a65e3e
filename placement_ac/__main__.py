"""The command line's entry."""

import resource

from placement_ac.cli.main import main as cli


def main() -> None:
    """Run the command that is asked for. No core is dumped if it crashes: there may be tokens in it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    cli()


if __name__ == "__main__":
    main()

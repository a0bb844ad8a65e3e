"""The command line's entry."""

from placement_ac.cli.main import main

if __name__ == "__main__":
    main()

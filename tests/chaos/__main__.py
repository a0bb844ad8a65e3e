"""
Run two replicas under random load and random faults, and check every second that nothing is wrong.

`make chaos`: a hub with the stand-ins for OCM and Kueue, three workers, and two replicas of the controller in
processes of their own. Jobs come at random, the best cluster changes, and one fault after the other begins
and ends (`tests.chaos.faults`). Always: no job runs twice, none is started again, no token is in a log line,
the memory stays under the limit of the Deployment, and `/livez` answers within a second, not counting the
time in which the process has waited for a CPU. After the last fault all jobs finish, and all is right again,
within --right-again seconds. The same seed plays the same faults at the same times. Prints a summary; exits
with 1 if something was wrong.
"""

import json
import tempfile
from pathlib import Path

import click

from tests.chaos.play import played


@click.command(context_settings={"show_default": True})
@click.option("--seconds", default=600.0, type=click.FloatRange(1), help="How long.")
@click.option("--seed", "seeds", multiple=True, default=(1,), type=int)
@click.option("--rate", default=0.3, help="Jobs a second.")
@click.option("--right-again", default=120.0, help="Seconds after the last fault.")
@click.option("--logs", "kept", type=click.Path(file_okay=False, path_type=Path), help="Keep the logs there.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the summary as JSON.")
def main(
    seconds: float,
    seeds: tuple[int, ...],
    rate: float,
    right_again: float,
    kept: Path | None,
    output: Path | None,
) -> None:
    """Play once for each seed, and print the summary."""
    with tempfile.TemporaryDirectory() as temporary:
        found = []
        for seed in seeds:
            folder = (kept or Path(temporary)) / str(seed)
            folder.mkdir(parents=True)
            found.append(played(seed, seconds, right_again, rate, folder))
    for one in found:
        click.echo(json.dumps(one, indent=2))
    if output:
        output.write_text(json.dumps(found, indent=2))
    raise SystemExit(any(one["wrong"] for one in found))


if __name__ == "__main__":
    main()

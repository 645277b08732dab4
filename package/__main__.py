"""`python -m brokerproof` is the command `brokerproof`.

It is loaded here, so that Ctrl-C while that takes its moment ends in a line like any other.
"""

from brokerproof.checks.workers.interrupts import ending_at_once


def main() -> None:
    """Load the command and run it."""
    with ending_at_once():
        from brokerproof.checks.commands.command_line import main as command  # noqa: PLC0415
    command(prog_name="brokerproof")


if __name__ == "__main__":
    main()

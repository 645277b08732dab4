"""`python -m brokerproof` is the command `brokerproof`.

It is loaded here, so that Ctrl-C while that takes its moment ends in a line like any other.
"""

import sys


def main() -> None:
    """Load the command and run it."""
    try:
        from brokerproof.checks.command_line import main as command  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.exit("interrupted before anything was run")
    command(prog_name="brokerproof")


if __name__ == "__main__":
    main()

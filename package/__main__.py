"""`python -m brokerproof` is the command `brokerproof`.

The command is imported inside `main`, so that Ctrl-C during the import ends in one line too.
"""

from brokerproof.checks.workers.interrupts import ending_at_once


def main() -> None:
    """Load the command and run it."""
    with ending_at_once():
        from brokerproof.checks.commands.command_line import main as command  # noqa: PLC0415
    command(prog_name="brokerproof")


if __name__ == "__main__":
    main()

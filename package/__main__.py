"""`python -m brokerproof` is the command `brokerproof`."""

from brokerproof.checks.command_line import main

if __name__ == "__main__":
    main(prog_name="brokerproof")

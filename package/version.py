"""The version of the distribution and its home, each stated once."""

__version__ = "0.1.0.dev0"

HOME = "https://github.com/brokerproof/brokerproof"
"""The address of the project's pages; a test holds it equal to the one in `pyproject.toml`."""

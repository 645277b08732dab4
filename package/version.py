"""The version of the distribution and its home, each stated once."""

__version__ = "0.1.0.dev0"

HOME = "https://github.com/brokerproof/brokerproof"
"""Where its pages are; `pyproject.toml` names the same, which a test holds."""

"""The version of the package, one literal."""

__version__ = "0.1.0"

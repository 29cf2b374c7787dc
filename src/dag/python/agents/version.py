"""The release of the SDK that this stands in for."""

__version__ = "0.24.0"

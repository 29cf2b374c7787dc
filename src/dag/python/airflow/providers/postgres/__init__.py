"""The provider's stand-ins."""

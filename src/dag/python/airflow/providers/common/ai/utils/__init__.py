"""Helpers of the provider that Dag files import."""

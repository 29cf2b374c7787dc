"""Triggers of the standard provider: what deferred tasks of it wait for."""

"""Policies of retries and decisions."""

"""Delayed messages under ids of the caller's choice."""

"""Seeing what workers do: where a job is just now, measures, traces."""

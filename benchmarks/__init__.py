"""Measurements: one question per file. `make bench` runs them and writes `results.md`."""

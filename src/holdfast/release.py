"""The version of this release: the only place that has it."""

VERSION = "0.3.0"

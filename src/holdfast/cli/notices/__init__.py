"""Notices of `holdfast notify`: what they say, where they are sent, and how they get there."""

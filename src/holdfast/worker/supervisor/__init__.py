"""Keeping children: the one process that forks them, watches them, and keeps or gives back their leases."""

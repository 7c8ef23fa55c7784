"""Performing one job in a process: its code, what surrounds it, and what becomes of it."""

"""Clients and their handles, in two colours; the tables in between are written once."""

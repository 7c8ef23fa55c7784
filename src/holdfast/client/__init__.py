"""The sync and the async client and their handles; methods that both have are written once."""

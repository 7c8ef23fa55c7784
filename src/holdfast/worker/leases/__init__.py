"""The leases of a worker: the table in shared memory, when they are renewed, and what becomes of lost ones."""

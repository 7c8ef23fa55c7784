"""Workers: one loop that takes and settles jobs, and the pools that perform them."""

"""The attributes and methods of jobs, for both clients."""

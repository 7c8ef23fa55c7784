"""What can be read of a job and done with it, in two colours."""

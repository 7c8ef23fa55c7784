"""What happens to tracked jobs, told as it happens, and listening to channels."""

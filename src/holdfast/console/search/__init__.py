"""Search for jobs: the terms of filters, and their values."""

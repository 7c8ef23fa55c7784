"""How jobs come into queues: options, many at once, and put together."""

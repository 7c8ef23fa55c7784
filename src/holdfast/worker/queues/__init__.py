"""Which queues a worker looks into, and in which order."""

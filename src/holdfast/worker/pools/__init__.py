"""How a worker performs its jobs: one module a model."""

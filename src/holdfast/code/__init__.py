"""What a klass means: function jobs, class jobs, and which of them a worker may run."""

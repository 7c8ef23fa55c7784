"""The code of a klass: function jobs, class jobs, and which of them a worker may run."""

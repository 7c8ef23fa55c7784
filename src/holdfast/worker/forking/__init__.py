"""One job in a process of its own."""

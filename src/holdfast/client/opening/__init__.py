"""What a client is made from: options, and where its store is."""

"""Stand-ins for other packages' names, so that a program moves by one import. Nothing else lives here."""

"""What operators see and do: queries and actions over a client, for the command line and the web pages."""

"""The command line. It decides nothing; lower layers do."""

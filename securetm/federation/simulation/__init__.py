"""A federation on one machine, with every role in reach."""

"""The command line. Lower layers take every decision."""

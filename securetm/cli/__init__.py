"""The command line. Every decision it announces is taken on a floor below."""

"""The coordinator: rounds, training, the one list of words, and what it needs to serve parties over a network."""

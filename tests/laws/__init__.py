"""Toy parts, mutants with one deliberate fault each, and what `securetm.testing` makes of them."""

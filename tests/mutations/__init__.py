"""Deliberate faults in the core, and whether a test catches each: `python -m tests.mutations`."""

"""Rounds, roles, transcript and run store: where the parts meet."""

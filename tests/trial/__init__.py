"""Trials of a federation on one machine."""

"""Fits of the rules that recommend settings."""

"""The papers' tables and the project's measurements, reproducible by name."""

"""The version of this package, stated once. The package's metadata are built from it."""

from __future__ import annotations

__version__ = "0.1.0"

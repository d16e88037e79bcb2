"""The three verdicts of an audit, as words. How one is reached is said in `findings.py`; there is none that says "safe"."""

from __future__ import annotations

REFUTED, NOT_REFUTED, NOT_TESTED = "refuted", "not refuted", "not tested"

"""Errors of figures that cannot be computed from what was given. It checks nothing itself."""

from __future__ import annotations

from securetm.errors import SecuretmError


class TooFewLabels(SecuretmError):
    """classification needs at least two labels of two documents each, and finds {found} among {documents:document|documents}"""

    documents: int
    found: int
    hint = "name the column of the label: --label COLUMN (in Python label=)"

"""Errors of adapting a model to a party's own documents."""

from __future__ import annotations

from securetm.errors import Misuse


class TooFewToAdapt(Misuse):
    """{documents:document has|documents have} a word that the model knows: too few to adapt it and to see whether that helps"""

    documents: int
    hint = "give more documents; is the text column the right one (--text COLUMN)?"

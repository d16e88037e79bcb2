"""Answers of `securetm choose` that are missing, and a plan that would be lost. It checks nothing itself."""

from __future__ import annotations

from securetm.errors import Misuse


class AnswersMissing(Misuse):
    """{count:question has|questions have} no answer, and there is no terminal to ask at: {flags}"""

    count: int
    flags: str
    hint = "give these options, or --answers FILE with a TOML file of answers (`-` for standard input)"


class PlanExists(Misuse):
    """{path} is there already, and choosing again would replace it"""

    path: str
    hint = "name another file after --out, or add --replace"

"""Errors of files with labels of topics."""

from __future__ import annotations

from securetm.errors import Misuse


class BadLabels(Misuse):
    """{path} cannot be used as labels of these topics: {problem}"""

    path: str
    problem: str
    hint = (
        'correct the file; it is written {{"labels": {{"0": "weather"}}}}, with topics counted from 0 as in --json, '
        "and `securetm topics RUN --label 1=weather` writes it"
    )

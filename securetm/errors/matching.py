"""Topics that cannot be matched, and parties that have none to match."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.errors.tree import Misuse


@dataclass(eq=False)
class NotTopics(Misuse):
    """the topics of {whose} cannot be matched: {problem}"""

    whose: str
    problem: str
    hint = "give a table of topics x words of the same vocabulary, whose entries are finite and not negative"

"""Where a training on short texts begins under a budget, if nothing says so: a rule of public numbers.

In a text of five words a model finds little that contradicts the topics that it began at, so it stays at them. Topics of
general word vectors may fit a narrow subject badly. Topics of `moments` come from the documents themselves, but cost a part of
the budget. The rule's two numbers were seen on titles, papers' titles and messages, in the rows that a forecast is fitted to
(`python -m lab reproduce usefulness-forecast`). It reads no document.
"""

from __future__ import annotations

from securetm.models.rounds_rule import signal

SHORTEST = 5.5  # words of a document on the list: on texts that are longer than this, public topics predicted better
ASKED_FROM = 10.0  # the signal: below it, half of a budget finds no topics


def asks_first(documents: int, length: float, topics: int, words: int, noise: float) -> bool:
    """Whether topics of `moments` are asked for first: texts of so many words are short, and stand out of the noise.

    `noise` is that of a single round that has the whole budget. A length of 0 says nothing.
    """
    return 0 < length <= SHORTEST and signal(documents, topics, words, noise) >= ASKED_FROM

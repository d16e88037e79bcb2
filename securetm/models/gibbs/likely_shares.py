"""How words are likely shared out among topics, for predictions: what a table without noise says beyond chance.

A topic learned a word from a few of its uses, perhaps from one, and would say it with certainty. And a prior that takes all
words as alike predicts badly where documents are few. Here nothing is predicted worse than by the words' own totals for lack of
uses. It reads a table of counts and nothing else.
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import Array

_UNSEEN = 0.5  # uses more than were found (Krichevsky and Trofimov 1981): no word is impossible
_SUREST = 1.0 - 1e-6  # of the shares as they were found: no topic excludes a word
_MOST, _TINY = 1e15, 1e-12


def likely_shares(counts: Array) -> Array:
    """Topics x words, summing to one: how often a use of any word is one of this word under this topic.

    Words have their totals. A word's shares of topics lie as far from those of all words as they were found, times what is not
    explained by chance (James and Stein 1961): so many uses, drawn from the shares of all words, would lie apart by one less
    than the number of topics, over the number of uses, in squares over the shares.
    """
    found = np.clip(np.nan_to_num(counts, nan=0.0), 0.0, _MOST)
    uses = found.sum(axis=0)
    topics = found.sum(axis=1) + _TINY
    usual = (topics / topics.sum())[:, None]
    apart = np.where(uses > 0, found / np.maximum(uses, _TINY) - usual, 0.0)
    squares = (np.square(apart) / usual).sum(axis=0)
    by_chance = (len(found) - 1) / np.maximum(uses, _TINY)
    believed = np.clip(1.0 - by_chance / np.maximum(squares, _TINY), 0.0, _SUREST)
    joint: Array = (uses + _UNSEEN) * (usual + believed * apart)
    joint /= joint.sum()
    return joint

"""Which of many items independent secret coins choose, exactly at a rate that is a whole number of 2^-64. It spends no privacy.

A few items get a 64-bit word each. Where few of many are chosen, random bits say how many items k fair coins in a row choose;
as many items are drawn, each as likely as any other; and a last coin of the rate times 2^k decides each. That has the same law,
and costs a 32nd of the random bytes.
"""

from __future__ import annotations

import numpy as np

from securetm.contracts import BLOCK_DOCUMENTS, Array, Entropy
from securetm.entropy import words

_RARE = 6  # so many fair coins in a row are rarer than one in 50


def tossed(items: int, below: int, entropy: Entropy) -> Array:
    """The items that are chosen, in rising order: each with the probability below / 2^64, independently of the others."""
    fair = 64 - below.bit_length()  # below / 2^64 is less than 2^-fair
    if fair >= _RARE and items > BLOCK_DOCUMENTS:
        return _rarely(items, below, fair, entropy)
    coins = words(entropy, items)
    return np.arange(items) if below == 2**64 else np.flatnonzero(np.less(coins, np.uint64(below)))


def _rarely(items: int, below: int, fair: int, entropy: Entropy) -> Array:
    left = items
    for _ in range(fair):
        left = _heads(left, entropy)
    if not left or not below:
        return np.zeros(0, dtype=np.int64)
    last = words(entropy, left) >> np.uint64(fair)
    return np.sort(_distinct(left, items, entropy)[np.less(last, np.uint64(below))])


def _heads(coins: int, entropy: Entropy) -> int:
    """How many of so many fair coins show heads: each is a bit."""
    bits = np.frombuffer(entropy.bytes(-(-coins // 8)), dtype=np.uint8)
    surplus = -coins % 8
    return int(np.bitwise_count(bits).sum()) - int(bits[-1:].sum() & ((1 << surplus) - 1)).bit_count()


def _distinct(wanted: int, items: int, entropy: Entropy) -> Array:
    """So many different items in the order in which they are drawn, every choice as likely as any other."""
    whole = np.uint64(2**64 // items * items % 2**64)  # words from here on would favour some items; 0: none would
    drawn = np.zeros(0, dtype=np.int64)
    while len(drawn) < wanted:
        fresh = words(entropy, wanted - len(drawn))
        fresh = fresh[fresh < whole] if whole else fresh
        _, first = np.unique(both := np.concatenate([drawn, (fresh % np.uint64(items)).astype(np.int64)]), return_index=True)
        drawn = both[np.sort(first)]
    return drawn

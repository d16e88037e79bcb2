"""The exchanges about hidden words, as both roles know them: purposes, what they are about, sizes of messages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from securetm.contracts import Array, Entropy, State
from securetm.models.questions.hidden_words import KEY
from securetm.models.questions.word_sketch import LONGEST
from securetm.sessions.framing import Label
from securetm.sessions.group_key import SharedSecret
from securetm.sessions.names import longest

SHARE_KEY, SHARE_NAMES = "key", "names"
CELLS, TOTALS = "cells", "totals"  # the arrays of a state
NAME = 1 + LONGEST  # bytes of one name: its length, and room for the longest


def about_names(cells: Array, totals: Array) -> State:
    """What an exchange of names is about: the cells, and what the sum showed of each."""
    return {CELLS: np.asarray(cells, np.int64), TOTALS: np.asarray(totals, np.int64)}


def bytes_of_names(columns: int) -> int:
    """The bytes of all names that a party tells, whether it names many columns or none."""
    return columns * NAME


def names_limits(parties: int, columns: int) -> tuple[int, int]:
    """The bytes of the longest message from a party and to one."""
    return longest(parties, bytes_of_names(columns), columns)


def _new(entropy: Entropy) -> bytes:
    return entropy.bytes(KEY)


def _any(secret: bytes, sender: str) -> None:
    del secret, sender


def words_key(draw: Callable[[Entropy], bytes] = _new, check: Callable[[bytes, str], object] = _any) -> SharedSecret:
    """The key under which words are hashed. A party draws and checks it by what it kept."""
    labels = Label.WORDS_HELLO, Label.WORDS_SEAL, Label.WORDS_KEY_NAME
    return SharedSecret(KEY, draw, check, *labels, kept_as="words")

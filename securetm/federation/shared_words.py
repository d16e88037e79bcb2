"""What both roles know of hidden words: exchanges, what they are about, sizes of messages, and what follows from exact sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from securetm.contracts import Answer, Array, Entropy, State
from securetm.federation.questions import BUCKETS, FEWEST_PARTIES, MARKS
from securetm.models.questions.hidden_words import KEY, MOST_OPEN_A_WORD, OPEN, WIDTH, FoundCells, frequent_buckets, no_buckets
from securetm.models.questions.word_sketch import LONGEST
from securetm.plans.schema import VocabularyChoice
from securetm.sessions.framing import Label
from securetm.sessions.group_key import SharedSecret
from securetm.sessions.names import longest

SHARE_KEY, SHARE_NAMES = "key", "names"
CELLS, TOTALS = "cells", "totals"  # the arrays of a state
NAME = 1 + LONGEST  # bytes of one name: its length, and room for the longest
_ROOM = 8  # one more bucket is asked about for so many words, because some hold several words and get no column


class OpenedWords:
    """What follows from exact sums of hidden words, for whoever opens them: which buckets to ask about again, and the cells.

    Before an answer is opened, or if one cannot be, it is of no word; what is asked next has the same size all the same.
    """

    def __init__(self, choice: VocabularyChoice, buckets: int) -> None:
        self._choice, self._buckets = choice, buckets
        wanted = choice.max_words + max(choice.max_words // _ROOM, MOST_OPEN_A_WORD)
        self.most = min(wanted, MOST_OPEN_A_WORD * choice.max_words, buckets)
        self.open_buckets, self.documents = np.zeros(0, np.int32), 0
        self.found = FoundCells(np.zeros(0, np.int64), np.zeros((0, WIDTH), np.int64))

    def take(self, question: str, answer: Answer) -> None:
        choice = self._choice
        if question == BUCKETS:
            self.open_buckets, self.documents = frequent_buckets(answer, self.most, choice.min_documents)
        elif question == MARKS:
            within = int(choice.max_share * self.documents)  # a product of floats: 0.29 of 100 are 29, and it says 28
            most_documents = within + ((within + 1) / max(self.documents, 1) <= choice.max_share)
            most, least = choice.max_words, choice.min_documents
            self.found = FoundCells.of(answer, self.about_marks()[OPEN], most, least, most_documents, FEWEST_PARTIES)

    def about_marks(self) -> State:
        """The buckets to ask about again, and room up to as many as there may be: so nobody needs to hear how many they are."""
        room = no_buckets(self.most - len(self.open_buckets), self._buckets)
        return {OPEN: np.concatenate([self.open_buckets, room])}


def about_names(cells: Array, totals: Array) -> State:
    """What an exchange of names is about: the cells, and what the sum showed of each."""
    return {CELLS: np.asarray(cells, np.int64), TOTALS: np.asarray(totals, np.int64)}


def bytes_of_names(columns: int) -> int:
    """The bytes of all names that a party tells, whether it names many columns or none."""
    return columns * NAME


def names_limits(parties: int, columns: int) -> tuple[int, int]:
    """The bytes of the longest message from a party and to one."""
    return longest(parties, bytes_of_names(columns), columns)


def words_key(
    draw: Callable[[Entropy], bytes] = lambda entropy: entropy.bytes(KEY),
    check: Callable[[bytes, str], object] = lambda secret, sender: None,  # noqa: ARG005 - the coordinator sees none
) -> SharedSecret:
    """The key under which words are hashed. A party draws and checks it by what it kept."""
    labels = Label.WORDS_HELLO, Label.WORDS_SEAL, Label.WORDS_KEY_NAME
    return SharedSecret(KEY, draw, check, *labels, kept_as="words")

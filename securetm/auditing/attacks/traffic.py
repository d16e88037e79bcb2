"""How many words each party has, for an observer who sees only the lengths of encrypted messages, and their senders.

The attack reads no content. The length of a party's list of words depends on its words; a message of fixed length shows
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from securetm.auditing.adversary_view import SIZES, AdversaryView
from securetm.auditing.attack import EVERY_MODEL, Attack, Effort, Estimate, GroundTruth, Proportion, Score
from securetm.auditing.illustrations import Example
from securetm.federation.questions import JOINT, TRAIN, WORDS

FOUND = "share of the parties' different words that were counted rightly"
ORDERED = "pairs of parties whose order by number of words is found"
_WORD = 9.0  # bytes of an English word in a list of different words, with its separator


def attack(view: AdversaryView, effort: Effort) -> Mapping[str, float]:
    """Estimates how many words each party has, by the first round in which the lengths of the parties' messages differ."""
    del effort
    sent: dict[int, dict[str, float]] = {}  # round -> party -> bytes
    for message in view.messages(SIZES):
        of_round = sent.setdefault(message.serial, dict.fromkeys(view.public.members, 0.0))
        if message.sender in of_round:
            of_round[message.sender] += int(message.content)
    differing = (of_round for of_round in sent.values() if len(set(of_round.values())) > 1)
    lengths = next(differing, dict.fromkeys(view.public.members, 0.0))
    return {party: length / _WORD for party, length in lengths.items()}


def judge(guess: Mapping[str, float], truth: GroundTruth) -> Score:
    """Compares the estimates with the real numbers of words. The list must hold every word of every party."""
    held = {party: _different_words(truth, party) for party in truth.held}
    missed = sum(abs(guess.get(party, 0.0) - words) for party, words in held.items())
    found = max(0.0, 1.0 - missed / max(sum(held.values()), 1))
    pairs = [(a, b) for a, b in combinations(held, 2) if held[a] != held[b]]
    right = sum((guess.get(a, 0.0) - guess.get(b, 0.0)) * (held[a] - held[b]) > 0 for a, b in pairs)
    examples = (Example(f"{held[party]:,} words", f"{guess.get(party, 0.0):,.0f} words", False) for party in held)
    return Score({FOUND: Estimate(found, found, found, 1.0), ORDERED: Proportion(right, len(pairs))}, tuple(examples))


def _different_words(truth: GroundTruth, party: str) -> int:
    return int(np.count_nonzero(truth.all_of(party).sum(axis=0)))


ATTACK = Attack(
    name="traffic",
    title="How many words each party has, from the lengths of encrypted messages",
    citation="lengths of encrypted messages show what they carry: Dyer et al. 2012 (Peek-a-Boo), IEEE S&P",
    cost="no time at all",
    given="the protocol, and how long an English word is",
    needs=(SIZES,),
    models=EVERY_MODEL,
    measures={FOUND: "word of a party", ORDERED: "pair of parties"},
    attack=attack,
    judge=judge,
    questions=(WORDS, JOINT, TRAIN),
    limits=(
        "the time that a party takes to answer, which answer_times tries",
        "padding and framing of a real connection, which add a few bytes to each message",
        "more than one set of parties: the share is a figure of this run, without an interval",
    ),
)

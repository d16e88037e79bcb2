"""How many words each party has, for somebody who sees only the lengths of encrypted messages, and their senders.

The attack reads no content. A party's list of its own words is as long as its words; a message of fixed length tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from securetm.federation.questions import JOINT, TRAIN, WORDS
from securetm.leakage.adversary_view import SIZES, AdversaryView, Message
from securetm.leakage.attack import Attack, Effort, Estimate, GroundTruth, Proportion, Score
from securetm.leakage.illustrations import Example

FOUND = "share of the parties' different words that were counted rightly"
ORDERED = "pairs of parties whose order by number of words is found"
_WORD = 9.0  # bytes of an English word in a list of different words, with its separator


def attack(view: AdversaryView, effort: Effort) -> Mapping[str, float]:
    """Estimates how many words each party has, by the first round in which the lengths of the parties' messages differ."""
    del effort
    sizes = view.messages(SIZES)
    for serial in dict.fromkeys(message.serial for message in sizes):
        sent = _sent([message for message in sizes if message.serial == serial], view.public.members)
        if len(set(sent.values())) > 1:
            return {party: length / _WORD for party, length in sent.items()}
    return dict.fromkeys(view.public.members, 0.0)


def _sent(sizes: Sequence[Message], members: Sequence[str]) -> dict[str, int]:
    """Bytes from each party in one round."""
    return {party: sum(int(message.content) for message in sizes if message.sender == party) for party in members}


def judge(guess: Mapping[str, float], truth: GroundTruth) -> Score:
    """Compares the estimates with the real numbers of words. The list must hold every word of every party."""
    held = {party: _different(truth, party) for party in truth.held}
    missed = sum(abs(guess.get(party, 0.0) - words) for party, words in held.items())
    found = max(0.0, 1.0 - missed / max(sum(held.values()), 1))
    pairs = [(a, b) for a, b in combinations(held, 2) if held[a] != held[b]]
    right = sum((guess.get(a, 0.0) - guess.get(b, 0.0)) * (held[a] - held[b]) > 0 for a, b in pairs)
    examples = (Example(f"{held[party]:,} words", f"{guess.get(party, 0.0):,.0f} words", False) for party in held)
    return Score({FOUND: Estimate(found, found, found, 1.0), ORDERED: Proportion(right, len(pairs))}, tuple(examples))


def _different(truth: GroundTruth, party: str) -> int:
    counts = [part[party] for part in (truth.held, truth.others) if party in part]
    used = sum(np.asarray(part.sum(axis=0)).ravel() for part in counts)
    return int(np.count_nonzero(used))


ATTACK = Attack(
    name="traffic",
    title="How many words each party has, from the lengths of encrypted messages",
    citation="lengths of encrypted messages tell what they carry: Dyer et al. 2012 (Peek-a-Boo), IEEE S&P",
    cost="no time at all",
    given="the protocol, and how long an English word is",
    needs=(SIZES,),
    models=("lda", "lda-matched", "lda-vi", "prodlda", "sentence-lda", "sentence-lda-matched"),
    measures={FOUND: "word of a party", ORDERED: "pair of parties"},
    attack=attack,
    judge=judge,
    questions=(WORDS, JOINT, TRAIN),
    limits=(
        "the time that a party takes to answer, which a transcript does not hold",
        "padding and framing of a real connection, which add a few bytes to each message",
        "more than one set of parties: the share is a figure of this run, without an interval",
    ),
)

"""Which of two answers of a party more text took part in, for an observer who sees only when encrypted messages pass.

The attack reads no content and no length. How long an answer took shows roughly how many documents a secret coin chose for it;
an answer that leaves at a fixed beat shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from securetm.federation.questions import TRAIN
from securetm.leakage.adversary_view import TIMES, AdversaryView
from securetm.leakage.attack import Attack, Effort, GroundTruth, Proportion, Score
from securetm.leakage.illustrations import Example
from securetm.leakage.leakage_errors import NotTestable

ORDERED = "pairs of a party's answers of which the larger one is found"
Seconds = Mapping[tuple[int, str], float]  # by round and party


def attack(view: AdversaryView, effort: Effort) -> Seconds:
    """Returns how long each party's answer took in each round: the longest wait of the round, as other messages are quick."""
    del effort
    found: dict[tuple[int, str], float] = {}
    for message in view.messages(TIMES):
        place = message.serial, message.sender
        found[place] = max(found.get(place, 0.0), float(message.content))
    if not found:
        raise NotTestable("no time was recorded: no network carried the messages of this run")
    return found


def judge(guess: Seconds, truth: GroundTruth) -> Score:
    """Takes the answers of each party in pairs, each in one pair, and counts how often the longer wait had more words."""
    pairs = list(_pairs(guess, truth))
    right = sum((guess[one] > guess[two]) == (truth.worked[one] > truth.worked[two]) for one, two in pairs)
    examples = tuple(
        Example(f"{truth.worked[one]:,} and {truth.worked[two]:,} words", f"{guess[one]:.4f} s and {guess[two]:.4f} s", False)
        for one, two in pairs[:5]
    )
    return Score({ORDERED: Proportion(right, len(pairs))}, examples)


def _pairs(guess: Seconds, truth: GroundTruth) -> Iterator[tuple[tuple[int, str], tuple[int, str]]]:
    """The answers two by two, where their words differ. The first two are left out: kernels are compiled then."""
    if not truth.worked:
        raise NotTestable("nobody knows which documents took part in the answers of this run")
    for party in sorted({party for _, party in truth.worked}):
        rounds = sorted(serial for serial, name in truth.worked if name == party and (serial, name) in guess)[2:]
        for one, two in zip(rounds[::2], rounds[1::2], strict=False):
            if truth.worked[one, party] != truth.worked[two, party]:
                yield (one, party), (two, party)


ATTACK = Attack(
    name="answer_times",
    title="Which of two answers more text took part in, from how long they took",
    citation="how long a computation takes shows what it works on: Kocher 1996, CRYPTO",
    cost="no time at all",
    given="the protocol",
    needs=(TIMES,),
    models=("lda", "lda-matched", "lda-vi", "prodlda", "sentence-lda", "sentence-lda-matched"),
    measures={ORDERED: "pair of answers"},
    attack=attack,
    judge=judge,
    questions=(TRAIN,),
    limits=(
        "one party against another: a beat follows the size of a party's corpus, on a coarse grid",
        "a wide-area network, which delays messages by more than this machine does",
        "the coordinator's own clock beside that of an observer: both see the same times here",
    ),
)

"""Which party has more text, and which of its answers more took part in, for an observer who sees when messages pass.

The attack reads no content and no length. How long an answer took shows roughly how many documents a secret coin chose for it;
an answer that leaves at a fixed beat shows nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from securetm.auditing.adversary_view import TIMES, AdversaryView
from securetm.auditing.attack import EVERY_MODEL, Attack, Effort, GroundTruth, Proportion, Score
from securetm.auditing.illustrations import Example
from securetm.auditing.leakage_errors import NotTestable
from securetm.federation.questions import TRAIN

PARTIES = "pairs of parties of which the one with more text is found"
ANSWERS = "pairs of a party's answers of which the larger one is found"
_FIRST = 2  # rounds that are left out: kernels are compiled in them
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
    """Orders parties by their shortest wait, and the answers of each party two by two. Compares both with what took part."""
    if not truth.worked:
        raise NotTestable("nobody knows which documents took part in the answers of this run")
    rounds = {party: _rounds(party, guess, truth) for party in truth.held}
    waits = {party: min((guess[one, party] for one in found), default=0.0) for party, found in rounds.items()}
    held = {party: int(truth.held[party].sum()) for party in truth.held}
    parties = [(waits[a] > waits[b]) == (held[a] > held[b]) for a, b in combinations(held, 2) if held[a] != held[b]]
    answers = [
        (guess[one, party] > guess[two, party]) == (truth.worked[one, party] > truth.worked[two, party])
        for party, found in rounds.items()
        for one, two in zip(found[::2], found[1::2], strict=False)
        if truth.worked[one, party] != truth.worked[two, party]
    ]
    examples = tuple(Example(f"{held[party]:,} words", f"{waits[party]:.4f} s", False) for party in held)
    counted = {PARTIES: parties, ANSWERS: answers}
    return Score({name: Proportion(sum(right), len(right)) for name, right in counted.items()}, examples)


def _rounds(party: str, guess: Seconds, truth: GroundTruth) -> list[int]:
    return sorted(serial for serial, name in truth.worked if name == party and (serial, name) in guess)[_FIRST:]


ATTACK = Attack(
    name="answer_times",
    title="How much text parties have, and how much of it took part in an answer, from how long answers took",
    citation="how long a computation takes shows what it works on: Kocher 1996, CRYPTO",
    cost="no time at all",
    given="the protocol",
    needs=(TIMES,),
    models=EVERY_MODEL,
    measures={PARTIES: "pair of parties", ANSWERS: "pair of answers"},
    attack=attack,
    judge=judge,
    questions=(TRAIN,),
    varied=True,
    remark="The judge lets the share of documents in an answer vary from one in twenty to all, far more than coins would.",
    limits=(
        "parties of very different size: a beat follows the size of a party's corpus, on a grid of powers of two",
        "a wide-area network, which delays messages by more than this machine does",
        "the coordinator's own clock beside that of an observer: both see the same times here",
    ),
)

"""Who has how much text, for an observer who sees only the lengths or the times of encrypted messages, and their senders.

No content is read. A message of fixed length, and an answer that leaves at a fixed interval, show nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from securetm.auditing.attack import EVERY_MODEL, Attack, Effort, Estimate, GroundTruth, Proportion, Score
from securetm.auditing.record import Example
from securetm.auditing.views import SIZES, TIMES, AdversaryView, NotTestable
from securetm.federation.questions import JOINT, TRAIN, WORDS

# ---- lengths --------------------------------------------------------------------------------------------------------

FOUND = "share of the parties' different words that were counted rightly"
ORDERED = "pairs of parties whose order by number of words is found"
_WORD = 9.0  # bytes of an English word in a list of different words, with its separator


def estimate_words(view: AdversaryView, effort: Effort) -> Mapping[str, float]:
    """Estimates how many words each party has, by the first round in which the lengths of the parties' messages differ."""
    sent: dict[int, dict[str, float]] = {}  # round -> party -> bytes
    for message in view.messages(SIZES):
        of_round = sent.setdefault(message.serial, dict.fromkeys(view.public.members, 0.0))
        if message.sender in of_round:
            of_round[message.sender] += int(message.content)
    differing = (of_round for of_round in sent.values() if len(set(of_round.values())) > 1)
    lengths = next(differing, dict.fromkeys(view.public.members, 0.0))
    return {party: length / _WORD for party, length in lengths.items()}


def judge_words(guess: Mapping[str, float], truth: GroundTruth) -> Score:
    """Compares the estimates with the real numbers of words. The list must hold every word of every party."""
    held = {party: int(np.count_nonzero(truth.all_of(party).sum(axis=0))) for party in truth.held}
    missed = sum(abs(guess.get(party, 0.0) - words) for party, words in held.items())
    found = max(0.0, 1.0 - missed / max(sum(held.values()), 1))
    pairs = [(a, b) for a, b in combinations(held, 2) if held[a] != held[b]]
    right = sum((guess.get(a, 0.0) - guess.get(b, 0.0)) * (held[a] - held[b]) > 0 for a, b in pairs)
    examples = (Example(f"{held[party]:,} words", f"{guess.get(party, 0.0):,.0f} words", False) for party in held)
    return Score({FOUND: Estimate(found, found, found, 1.0), ORDERED: Proportion(right, len(pairs))}, tuple(examples))


TRAFFIC = Attack(
    name="traffic",
    title="How many words each party has, from the lengths of encrypted messages",
    citation="lengths of encrypted messages show what they carry: Dyer et al. 2012 (Peek-a-Boo), IEEE S&P",
    cost="no time at all",
    given="the protocol, and how long an English word is",
    needs=(SIZES,),
    models=EVERY_MODEL,
    measures={FOUND: "word of a party", ORDERED: "pair of parties"},
    attack=estimate_words,
    judge=judge_words,
    questions=(WORDS, JOINT, TRAIN),
    limits=(
        "the time that a party takes to answer, which answer_times tries",
        "padding and framing of a real connection, which add a few bytes to each message",
        "more than one set of parties: the share is a figure of this run, without an interval",
    ),
)


# ---- times ----------------------------------------------------------------------------------------------------------

PARTIES = "pairs of parties of which the one with more text is found"
ANSWERS = "pairs of a party's answers of which the larger one is found"
_FIRST = 2  # rounds that are left out: kernels are compiled in them; even, as rounds are compared two by two
Seconds = Mapping[tuple[int, str], float]  # by round and party


def read_times(view: AdversaryView, effort: Effort) -> Seconds:
    """Returns how long each party's answer took in each round: the longest wait of the round, as other messages are quick."""
    found: dict[tuple[int, str], float] = {}
    for message in view.messages(TIMES):
        place = message.serial, message.sender
        found[place] = max(found.get(place, 0.0), float(message.content))
    if not found:
        raise NotTestable("no time was recorded: no network carried the messages of this run")
    return found


def judge_times(guess: Seconds, truth: GroundTruth) -> Score:
    """Orders parties by their shortest wait, and the answers of each party two by two. Compares both with what took part."""
    if not truth.worked:
        raise NotTestable("nobody knows which documents took part in the answers of this run")
    rounds = {  # of which both the answer's time and its words are known
        party: sorted(serial for serial, name in truth.worked if name == party and (serial, name) in guess)[_FIRST:]
        for party in truth.held
    }
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


ANSWER_TIMES = Attack(
    name="answer_times",
    title="How much text parties have, and how much of it took part in an answer, from how long answers took",
    citation="how long a computation takes shows what it works on: Kocher 1996, CRYPTO",
    cost="no time at all",
    given="the protocol",
    needs=(TIMES,),
    models=EVERY_MODEL,
    measures={PARTIES: "pair of parties", ANSWERS: "pair of answers"},
    attack=read_times,
    judge=judge_times,
    questions=(TRAIN,),
    varied=True,
    remark="Of two answers the judge lets one be of few documents, at most one in five, and one of four in five or more: "
    "coins would let them differ far less.",
    limits=(
        "parties of very different size: an interval follows the size of a party's corpus, on a grid of powers of two",
        "a wide-area network, which delays messages by more than this machine does",
        "the coordinator's own clock beside that of an observer: both see the same times here",
    ),
)

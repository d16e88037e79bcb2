"""What an audit says about the three questions by which European regulators judge whether a model is anonymous.

The European Data Protection Board (opinion 28/2024 on AI models, with opinion 05/2014 of the Article 29 Working Party) asks
whether a person can be singled out, whether records can be linked, and whether something can be inferred about a person. This
module sorts findings by these questions. It reaches no verdict of its own, and it does not say that a model is anonymous.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from msgspec import Struct

from securetm.auditing.attacks import ATTACKS, declared
from securetm.auditing.record import NOT_REFUTED, REFUTED, Audit, Finding

SINGLING_OUT, LINKING, INFERENCE = "singling out", "linking", "inference"
CRITERIA: Mapping[str, str] = {
    SINGLING_OUT: "Can the text of one person be isolated, in whole or in part?",
    LINKING: "Can a record that somebody holds be linked to the training, to another record, or to an organisation?",
    INFERENCE: "Can something about a person be deduced with a probability well above chance?",
}

THE_MODEL, THE_TRAINING = "the finished model", "messages of the training"
SCOPES = (THE_MODEL, THE_TRAINING)  # the opinion asks about the model; whoever sees the training sees more

SHOWN, ABOVE_CHANCE, NOT_SHOWN, NOT_TRIED = "shown", "above chance", "tried, not shown", "not tried"
OUTCOMES = (SHOWN, ABOVE_CHANCE, NOT_SHOWN, NOT_TRIED)


class AnonymityFinding(Struct, frozen=True, forbid_unknown_fields=True):
    """What the attacks on one run say about one question, asked of the finished model or of the messages of its training."""

    criterion: str
    question: str
    scope: str
    outcome: str
    attacks: tuple[str, ...] = ()  # those that were tried
    shown_by: tuple[str, ...] = ()  # those with the outcome that is stated, where it is `shown` or `above chance`


def bears_on(attack: str) -> tuple[str, ...]:
    """The criteria that an attack declares to bear on: whose texts it gives, who was a member, or what an organisation's say.

    An attack that is not installed here, as in a file from elsewhere, bears on none.
    """
    return declared(attack, "bears_on") if attack in ATTACKS else ()


def anonymity_questions(record: Audit) -> tuple[AnonymityFinding, ...]:
    """One finding for each criterion and scope; none if the audit is no audit of one run.

    `shown` is a figure that the plan counts as refuted. `above chance` is less than that, and more than the same attack finds
    in random numbers: an epsilon may allow it, and the opinion asks for an insignificant likelihood all the same.
    """
    return anonymity_of([one for one in record.findings if one.run.name == record.run])


def anonymity_of(findings: Sequence[Finding]) -> tuple[AnonymityFinding, ...]:
    """One finding for each criterion and scope; none if nothing was found."""
    answered = []
    for criterion, scope in product(CRITERIA, SCOPES) if findings else ():
        tried: dict[str, list[str]] = {outcome: [] for outcome in OUTCOMES}
        for one in bearing_on(findings, criterion, scope):
            tried[outcome_of(one)].append(one.attempt.attack)
        outcome = next((each for each in OUTCOMES if tried[each]), NOT_TRIED)
        attacks = tuple(dict.fromkeys(name for each in (SHOWN, ABOVE_CHANCE, NOT_SHOWN) for name in tried[each]))
        by = tuple(dict.fromkeys(tried[outcome])) if outcome in (SHOWN, ABOVE_CHANCE) else ()
        answered.append(AnonymityFinding(criterion, CRITERIA[criterion], scope, outcome, attacks, by))
    return tuple(answered)


def bearing_on(findings: Iterable[Finding], criterion: str, scope: str) -> list[Finding]:
    """Those findings that bear on this question, asked of the model or of the training."""
    of_model = scope == THE_MODEL
    asked = (one for one in findings if of_model == (set(one.about.sees) <= frozenset({"model", "vocabulary"})))
    return [one for one in asked if criterion in bears_on(one.attempt.attack)]


def outcome_of(finding: Finding) -> str:
    """What one finding says: its verdict asks about a claim, and this asks whether the attack found anything at all."""
    outcome = finding.outcome
    found, chance = outcome.measured, outcome.chance
    if found.value is None:
        return NOT_TRIED
    if outcome.verdict == REFUTED:
        return SHOWN
    least = chance.high if chance is not None else found.by_chance
    if least is not None and found.low > least:
        return ABOVE_CHANCE
    return NOT_SHOWN if outcome.verdict == NOT_REFUTED else NOT_TRIED  # a failure that teaches nothing shows nothing

"""The facts of the page to sign, as plain records: page, PDF, text, terminal and `--json` show these and nothing else.

A figure stands here as the record has it, and beside it the text that every form of the page shows. Nothing is read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from securetm.leakage.verdicts import NOT_TESTED

THIS_RUN, SAME_MODEL, OTHER_MODEL = "this run", "same profile and model", "same profile, another model"
UNPROTECTED = "the same model, without protection"  # what a profile without noise hands on is the same
PLACES = (THIS_RUN, SAME_MODEL, UNPROTECTED, OTHER_MODEL)  # what comes first is said first


@dataclass(frozen=True)
class PartyFacts:
    """Who took part, and what was spent of its documents. `key` is a fingerprint; a figure that is not known is None."""

    name: str
    key: str
    epsilon: float | None = None
    delta: float | None = None
    unit: str = ""
    budget: float | None = None
    all_runs: float | None = None
    lasting: bool = False  # whether its ledger outlives the run, so that other runs add up in it


@dataclass(frozen=True)
class RoleFacts:
    """What one role saw, by the profile, and what is promised against it."""

    role: str
    sees: tuple[str, ...]
    promised: tuple[str, ...]


@dataclass(frozen=True)
class Tried:
    """The worst that came out in one place for one question, and how many attempts were made there."""

    place: str  # one of `PLACES`
    standing: str
    attack: str
    measure: str  # in plain words
    figure: str  # with its interval, as in the record
    tries: str
    value: float | None
    low: float | None
    high: float | None
    model: str
    helpers: int
    day: str
    setting: str = ""
    counts: Mapping[str, int] | None = None  # attempts by standing
    stale: bool = False  # the software changed since
    why: str = ""  # of what tested nothing
    claimed: str = ""  # the epsilon at which it was tried, where that is not this run's
    effort: str = ""  # how hard it was tried
    ideal: str = ""  # what an ideal attacker would have reached with as many tries

    @property
    def tested(self) -> bool:
        """Whether anything was learned."""
        return self.standing != NOT_TESTED

    @property
    def of_this_model(self) -> bool:
        """Whether it can answer for this run: another model is not this one."""
        return self.place != OTHER_MODEL


@dataclass(frozen=True)
class QuestionAnswer:
    """The answer to one of the five questions."""

    question: str
    short: str
    sentence: str
    standing: str  # the mark: the worst on this run and on this model; `not tested` if nothing was learned there
    promised: tuple[str, ...]
    tried: tuple[Tried, ...]
    limit: str = ""  # what the budget proves, whatever anybody tries
    beside: str = ""  # how lies ended that were told to parties


@dataclass(frozen=True)
class CriterionFacts:
    """What came out for one question of regulators, asked of the finished model or of the messages of the training."""

    criterion: str
    scope: str
    outcome: str  # shown, above chance, tried and not shown, or not tried
    attack: str = ""  # the one with the largest figure among those with that outcome
    measure: str = ""  # in plain words
    figure: str = ""  # with its interval, as in the record
    value: float | None = None
    attempts: int = 0  # that bear on it, and learned anything
    ideal: str = ""  # what an ideal attacker would have reached with as many tries


@dataclass(frozen=True)
class Rule:
    """A rule of the recommendation, whether it applies, and what follows from it."""

    rule: str
    applies: bool
    follows: str


@dataclass(frozen=True)
class SignedReport:
    """Everything that the page says."""

    title: str
    run: str
    made: str  # days as in the records; empty if none is noted
    software: str
    digests: Mapping[str, str]  # of run, model, plan and profile
    model: str
    rounds: int
    profile: str
    profile_title: str
    danger: str
    coordinator: str
    parties: tuple[PartyFacts, ...]
    whose: str  # what a party's key is
    roles: tuple[RoleFacts, ...]
    recorded: tuple[str, ...]  # what the transcript itself says was sent
    spent: tuple[str, ...]
    answers: tuple[QuestionAnswer, ...]
    headline: str
    not_tried: tuple[str, ...]
    not_promised: tuple[str, ...]
    rules: tuple[Rule, ...]
    recommendation: str
    regulators: tuple[CriterionFacts, ...]  # of attempts on this run; none where it was not audited
    audits: Mapping[str, str]  # the audits of this run: plan, and the digest of its record
    annexes: Mapping[str, str] = field(default_factory=dict)  # the technical pages that are written beside: SHA-256 by name

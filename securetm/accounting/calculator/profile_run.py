"""What a run under a profile spends: the words, the rounds, and how many rounds its budget lasts. It reads no profile itself.

Who reads it hands over the spends as the profile's own parts account for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dp_accounting import PoissonSampledDpEvent

from securetm.accounting.accounting_errors import BudgetTooSmall
from securetm.accounting.calculator.budget_report import BudgetReport, Plot, PlotLine, Promise, ReportTable, sentence_delta
from securetm.accounting.calculator.composed_report import (
    Progress,
    Spends,
    curve,
    figures,
    largest_by,
    places,
    replaced,
    surely_within,
)
from securetm.accounting.calculator.word_noise import PUBLIC, UNIT, WordNoise, laplace
from securetm.accounting.composition import total, within
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.pure import basic_epsilon
from securetm.accounting.spends import Spend, leaves_of
from securetm.contracts import Budget, Unit
from securetm.wording import counted, upward

MOST_ROUNDS = 10**6
_TRIES = 12  # about as many as the search takes


@dataclass(frozen=True)
class ProfileRun:
    """A run under a profile, in public numbers."""

    profile: str
    budget: Budget
    words: Spend | None  # of the vocabulary, if it is not public
    round: Spend | None  # nothing, where all noise is drawn once
    rounds: int
    against: str
    assumptions: tuple[str, ...]
    settings: Mapping[str, Any]
    documents: int | None = None
    once: Spend | None = None  # of noise that is drawn once per corpus
    found_from: int = 0  # documents of one party that a word needs to be found, where words are selected behind noise

    def spends(self, rounds: float) -> Spends:
        """The words and the noise that is drawn once, and so many rounds."""
        each = replace(self.round, count=round(rounds)) if self.round and rounds else None
        return tuple(spend for spend in (self.words, self.once, each) if spend is not None)


def _of_words(billed: ProfileRun) -> tuple[str, ...]:
    """What the noise on words means for them."""
    if not billed.found_from:
        return ()
    need = f"A word that is in {billed.found_from:,} documents of one party is found in 99 of 100 selections; rare ones are not"
    return (f"{need}. A public list of words costs nothing and needs none.",)


def from_bill(asked: ProfileRun, progress: Progress) -> BudgetReport:
    """The sheet of one run under a profile; where the budget ends before the rounds do, of the run that the ledger allows."""
    if asked.budget.unit is Unit.WORD and asked.round is None:
        return _by_word(asked, progress)
    unit, budget = asked.budget.unit.value, asked.budget
    lasts = _lasting(asked, progress)
    if lasts == 0:
        raise BudgetTooSmall(
            "round", upward(budget.epsilon), unit, "one costs more, or its failure_probability exceeds delta", _RATHER
        )
    billed = replace(asked, rounds=min(asked.rounds, lasts))
    sheet = figures(
        f"Profile {billed.profile}, {counted(billed.rounds, 'round')}",
        Promise(unit, billed.against, f"any one {unit} was in a party's corpus", (*_drawn(billed), *billed.assumptions)),
        billed.spends(billed.rounds),
        budget.delta,
        share=ALONE,
        sampling="poisson" if billed.round and isinstance(billed.round.event, PoissonSampledDpEvent) else "none",
        settings={"profile": billed.profile, "rounds": asked.rounds, **billed.settings, "documents": billed.documents},
    )
    warnings = (sentence_delta(budget.delta, billed.documents) if billed.documents else None, _stops(asked, unit, lasts))
    return replace(
        sheet,
        warnings=(*filter(None, warnings), *sheet.warnings),
        tables=(_parts(billed, sheet, lasts),),
        notes=(*_of_words(billed), _SHARE, replaced(sheet.epsilon, sheet.delta, unit), *(_ALL_ASKED if _drawn(billed) else ())),
        plots=(_by_round(billed, sheet, progress),),
        found={
            "rounds": billed.rounds,
            "budget": {"epsilon": budget.epsilon, "delta": budget.delta, "lasts_rounds": lasts},
        },
    )


def _by_word(asked: ProfileRun, progress: Progress) -> BudgetReport:
    """The sheet of noise on single word occurrences: drawn once, whatever number of rounds and runs is made of it."""
    budget = asked.budget
    if not within(asked.spends(asked.rounds), budget.epsilon, ALONE * budget.delta):
        raise BudgetTooSmall("drawing of the noise", upward(budget.epsilon), UNIT, "it costs more", _RATHER)
    sheet = figures(
        f"Profile {asked.profile}, noise drawn once for {counted(asked.rounds, 'round')}",
        Promise(UNIT, asked.against, f"any one {UNIT} is in a party's documents", (*_PLACES, *asked.assumptions)),
        asked.spends(asked.rounds),
        budget.delta,
        share=ALONE,
        sampling="none",
        settings={"profile": asked.profile, "rounds": asked.rounds, **asked.settings, "documents": asked.documents},
    )
    pure = basic_epsilon(leaves_of(asked.spends(asked.rounds)))
    whole = laplace(WordNoise(pure), progress)  # what it is for a whole document: group privacy goes by the pure epsilon
    return replace(
        sheet,
        warnings=(*whole.warnings, *sheet.warnings),
        tables=whole.tables,
        notes=(_ONCE, *whole.notes),
        plots=whole.plots,
        found={
            **whole.found,
            "rounds": asked.rounds,
            "budget": {"epsilon": budget.epsilon, "delta": budget.delta, "lasts_rounds": MOST_ROUNDS},
        },
    )


_PLACES = (
    PUBLIC,
    "the noise is drawn once per corpus, kept by the party alone and used for all rounds and all runs",
)
_ONCE = (
    "Charged once: more rounds, and more runs over the same documents and words, spend no more. Another list of words, or "
    "other documents, means new noise, and the same again."
)
_ALL_ASKED = (
    "For a model that asks for batches. One that asks all documents in every round, as lda does, is not helped by the coins: a "
    "round costs it more, and its ledger ends it sooner (`--model lda` says by how much).",
)
_RATHER = "give the profile a larger budget, more noise, or tails that are cut more rarely (`miss`)"


def _lasting(billed: ProfileRun, progress: Progress) -> int:
    """How many rounds the ledger would let it go on."""
    epsilon, delta = billed.budget.epsilon, ALONE * billed.budget.delta
    progress.stage("rounds that the budget lasts", _TRIES)
    tried = iter(range(1, MOST_ROUNDS))

    def fits(rounds: int) -> bool:
        progress.step(next(tried))
        return within(billed.spends(rounds), epsilon, delta)

    return largest_by(lambda rounds: surely_within(billed.spends(rounds), epsilon, delta), fits, MOST_ROUNDS)


_SHARE = (
    "Computed at nine tenths of delta, as a party's ledger does: the rest is kept for further runs over the same documents."
)


def _drawn(billed: ProfileRun) -> tuple[str, ...]:
    event = billed.round.event if billed.round else None
    if not isinstance(event, PoissonSampledDpEvent):
        return ()
    coin = f"a coin of its own (with probability {event.sampling_probability:.4g}) that nobody else learns"
    return (f"a document joins each round by {coin}",)


def _stops(asked: ProfileRun, unit: str, lasts: int) -> str | None:
    if asked.rounds <= lasts:
        return None
    return (
        f"The budget, epsilon = {upward(asked.budget.epsilon)} per {unit}, lasts for {counted(lasts, 'round')}: "
        f"the ledger ends the run there, before the {counted(asked.rounds, 'round')} asked for."
    )


def _parts(billed: ProfileRun, sheet: BudgetReport, lasts: int) -> ReportTable:
    at = ALONE * billed.budget.delta
    words = [("the words alone", 1, total((billed.words,), at).epsilon)] if billed.words else []
    rows = (
        *words,
        ("words and rounds" if words else "rounds", billed.rounds, sheet.epsilon),
        ("the budget", lasts, billed.budget.epsilon),
    )
    most = "; the budget allows a million rounds and more" if lasts == MOST_ROUNDS else ""
    return ReportTable(
        "What it is spent on",
        ("", "rounds", f"epsilon per {sheet.unit}"),
        rows,
        f"The budget lasts so many rounds{most}.",
    )


def _by_round(billed: ProfileRun, sheet: BudgetReport, progress: Progress) -> Plot:
    along, unit = places(billed.rounds, whole=True), sheet.unit
    spent = curve("spent", billed.spends, along, ALONE * billed.budget.delta, progress)
    limit = PlotLine("budget", ((0.0, billed.budget.epsilon), (float(billed.rounds), billed.budget.epsilon)))
    return Plot(
        "epsilon against rounds", "rounds", f"epsilon per {unit}", (spent, limit), (float(billed.rounds), sheet.epsilon)
    )

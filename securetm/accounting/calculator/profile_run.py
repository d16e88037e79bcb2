"""Answers what a run under a profile spends, and for how many rounds its budget lasts. It reads no profile itself.

Whoever reads the profile hands over the spends as the profile's own parts account for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from dp_accounting import PoissonSampledDpEvent

from securetm.accounting.accounting_errors import BudgetTooSmall
from securetm.accounting.calculator.budget_report import (
    BudgetReport,
    PlotLine,
    Promise,
    ReportTable,
    epsilon_against,
    some,
)
from securetm.accounting.calculator.composed_report import (
    Spends,
    composed,
    curve,
    largest_by,
    surely_within,
)
from securetm.accounting.calculator.persons import SEPARATE, People, persons_table
from securetm.accounting.calculator.word_noise import PUBLIC, UNIT, WordNoise
from securetm.accounting.composition import total, within
from securetm.accounting.delta_limits import sentence_delta
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.pure import basic_epsilon
from securetm.accounting.spends import Spend, leaves_of
from securetm.contracts import Budget, Unit
from securetm.stages import Stages
from securetm.wording import counted, upward

MOST_ROUNDS = 10**6
_STEPS = 12  # about as many as the search for the last round takes
_DRAWN_ONCE = (
    PUBLIC,
    "the noise is drawn once per corpus, kept by the party alone and used for all rounds and all runs",
)
_CHARGED_ONCE = (
    "Charged once: more rounds, and more runs over the same documents and words, spend no more. Another list of words, or "
    "other documents, means new noise, and the same again."
)
_ALL_ASKED = (
    "For a model that asks for batches. One that asks all documents in every round, as lda does, is not helped by the coins: a "
    "round costs it more, and its ledger ends it sooner (`--model lda` says by how much)."
)
_SHARE = (
    "Computed at nine tenths of delta, as a party's ledger does: the rest is kept for further runs over the same documents."
)
_INSTEAD = "give the profile a larger budget, more noise, or tails that are cut more rarely (`miss`)"


@dataclass(frozen=True)
class SuggestedRounds:
    """How often a run asks where its plan does not say, and the noise with which the whole budget lasts for that."""

    rounds: int
    noise: float
    documents: int | None  # or persons, that the rule counted with; nothing: the model's usual number of rounds
    unit: str = "document"

    @property
    def sentence(self) -> str:
        """It in words."""
        rows = f"{self.unit}s"
        by = f"for about {self.documents:,} {rows}" if self.documents else f"where nobody says how many {rows} there are"
        return (
            f"A run that leaves the rounds open asks {counted(self.rounds, 'time')} {by} (`[training] documents`), "
            f"with a noise multiplier of {self.noise:.5g}: the whole budget lasts for that."
        )


@dataclass(frozen=True)
class ProfileRun:
    """A run under a profile, by public numbers."""

    profile: str
    budget: Budget
    words: Spend | None  # of the vocabulary, if it is not public
    round: Spend | None  # None where all noise is drawn once
    rounds: int
    against: str
    assumptions: tuple[str, ...]
    settings: Mapping[str, Any]
    documents: int | None = None
    once: Spend | None = None  # of noise that is drawn once per corpus
    list_note: str = ""  # how many words of a language's list can be expected to occur
    expected_words: Mapping[str, float] | None = None  # the same as numbers
    found_from: int = 0  # documents that a word needs to be found, where words are selected behind noise
    found_in: str = "one party"  # whose documents these are
    suggested: SuggestedRounds | None = None  # where the model needs few rounds
    people: People = SEPARATE
    noise: float | None = None  # over the bound on a row; nothing where the noise is on single words
    words_move_as_one: bool = True  # whether the spend of the words bounds any number of documents
    shares_note: str = ""  # what the noise in the sum is
    forecast_note: str = ""  # whether the model will be of use
    forecast: Mapping[str, Any] | None = None  # the same as numbers
    asked_first: Spend | None = None  # of pairs of words, where the training begins at their topics
    as_run: str = ""  # the command of that run

    @property
    def unit(self) -> str:
        """What the budget protects."""
        return self.budget.unit.value

    @property
    def delta(self) -> float:
        """The part of the budget's delta that one run may use."""
        return ALONE * self.budget.delta

    def spends(self, rounds: float) -> Spends:
        """The words and the noise that is drawn once, and so many rounds."""
        each = replace(self.round, count=round(rounds)) if self.round and rounds else None
        return tuple(spend for spend in (self.words, self.asked_first, self.once, each) if spend is not None)

    def report(self, progress: Stages) -> BudgetReport:
        """What the run spends, and what can be expected of a language's list of words."""
        spent = self._spent(progress)
        rounds = self.suggested.sentence if self.suggested else None
        return replace(spent, notes=some(*spent.notes, rounds, self.list_note, self.forecast_note))

    def _spent(self, progress: Stages) -> BudgetReport:
        """What the run spends. Where the budget ends before the last round, what the rounds spend that it lasts for."""
        if self.budget.unit is Unit.WORD and self.round is None:
            return self._noise_drawn_once(progress)
        budget, lasts = f"{upward(self.budget.epsilon)} per {self.unit}", self._lasting(progress)
        if lasts == 0:
            raise BudgetTooSmall("round", budget, "a round spends more, or its failure probability exceeds delta", _INSTEAD)
        run, people = replace(self, rounds=min(self.rounds, lasts)), self.people
        spent = curve("spent", run.spends, run.rounds, run.delta, progress, whole=True)
        last, epsilon = spent.points[-1]
        bounds = people.bounds(
            run.spends(run.rounds), epsilon, run.delta, stated=self.budget.delta, moves_as_one=self.words_move_as_one
        )
        limit = PlotLine("budget", ((0.0, self.budget.epsilon), (last, self.budget.epsilon)))
        return run._composed(
            f"Profile {run.profile}, {counted(run.rounds, 'round')}",
            Promise(
                self.unit,
                self.against,
                f"any one {self.unit} was in a party's corpus",
                run._sampled() + run.assumptions + people.assumptions,
            ),
            "poisson" if run._sampled() else "none",
            self.rounds,
            warnings=some(
                sentence_delta(self.budget.delta, people.units, people.protected), people.warning(bounds), self._ended(lasts)
            ),
            notes=some(
                self.as_run and f"That run: {self.as_run}",
                self.shares_note,
                *people.notes(),
                self._words_note(),
                _SHARE,
                _ALL_ASKED if run._sampled() else None,
            ),
            tables=(*persons_table(bounds), run._parts(epsilon, lasts)),
            plots=(epsilon_against("rounds", self.unit, spent, limit),),
            found={**run._found(lasts), **people.recorded(bounds)},
        )

    def _noise_drawn_once(self, progress: Stages) -> BudgetReport:
        """The report of noise on single word occurrences, which any number of rounds and runs uses again."""
        if not within(self.spends(self.rounds), self.budget.epsilon, self.delta):
            budget = f"{upward(self.budget.epsilon)} per {UNIT}"
            raise BudgetTooSmall("noise that is drawn once", budget, "it spends more", _INSTEAD)
        pure = basic_epsilon(leaves_of(self.spends(self.rounds)))  # group privacy goes by the pure epsilon
        whole = WordNoise(pure).report(progress)
        report = self._composed(
            f"Profile {self.profile}, noise drawn once for {counted(self.rounds, 'round')}",
            Promise(UNIT, self.against, f"any one {UNIT} is in a party's documents", _DRAWN_ONCE + self.assumptions),
            "none",
            self.rounds,
            warnings=whole.warnings,
            tables=whole.tables,
            plots=whole.plots,
            found={**whole.found, **self._found(MOST_ROUNDS)},
        )
        return replace(report, notes=(_CHARGED_ONCE, *whole.notes))

    def _composed(self, title: str, promise: Promise, sampling: str, asked: int, **more: Any) -> BudgetReport:
        return composed(
            title,
            promise,
            self.spends(self.rounds),
            self.budget.delta,
            share=ALONE,
            sampling=sampling,
            settings={"profile": self.profile, "rounds": asked, **self.settings, "documents": self.documents},
            **more,
        )

    def _found(self, lasts: int) -> dict[str, Any]:
        budget = {"epsilon": self.budget.epsilon, "delta": self.budget.delta, "lasts_rounds": lasts}
        expected = {"expected_words": dict(self.expected_words)} if self.expected_words else {}
        suggested = {"suggested": asdict(self.suggested)} if self.suggested else {}
        told = {"forecast": dict(self.forecast)} if self.forecast else {}
        return {"rounds": self.rounds, "noise": self.noise, "budget": budget, **suggested, **expected, **told}

    def _lasting(self, progress: Stages) -> int:
        """How many rounds the ledger would let it go on."""
        progress.stage("rounds that the budget lasts", _STEPS)
        tried = iter(range(1, MOST_ROUNDS))

        def fits(rounds: int) -> bool:
            progress.step(next(tried))
            return within(self.spends(rounds), self.budget.epsilon, self.delta)

        return largest_by(lambda n: surely_within(self.spends(n), self.budget.epsilon, self.delta), fits, MOST_ROUNDS)

    def _sampled(self) -> tuple[str, ...]:
        """The assumption about the coins of sampled documents; nothing where all documents are asked."""
        event = self.round.event if self.round else None
        if not isinstance(event, PoissonSampledDpEvent):
            return ()
        coin = f"a coin of its own (with probability {event.sampling_probability:.4g}) that nobody else learns"
        return (f"a {self.unit} joins each round by {coin}",)

    def _words_note(self) -> str | None:
        if not self.found_from:
            return None
        held = f"{self.found_from:,} documents of {self.found_in}"
        need = f"A word that is in {held} is found in 99 of 100 selections; rare ones are not"
        return f"{need}. A public list of words costs nothing and needs none."

    def _ended(self, lasts: int) -> str | None:
        if self.rounds <= lasts:
            return None
        return (
            f"The budget, epsilon = {upward(self.budget.epsilon)} per {self.unit}, lasts for {counted(lasts, 'round')}: "
            f"the ledger ends the run there, before the {counted(self.rounds, 'round')} asked for."
        )

    def _parts(self, epsilon: float, lasts: int) -> ReportTable:
        named = {"words": self.words, "question before the training": self.asked_first}
        before = {name: spend for name, spend in named.items() if spend}
        alone = [(f"the {name} alone", 1, total((spend,), self.delta).epsilon) for name, spend in before.items()]
        rounds = (" and ".join([*before, "rounds"]), self.rounds, epsilon)
        rows = (*alone, rounds, ("the budget", lasts, self.budget.epsilon))
        most = "; the budget allows a million rounds and more" if lasts == MOST_ROUNDS else ""
        caption = f"The budget lasts so many rounds{most}."
        return ReportTable("What it is spent on", ("", "rounds", f"epsilon per {self.unit}"), rows, caption)

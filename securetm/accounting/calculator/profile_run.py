"""What a run under a profile spends, and for how many rounds its budget lasts.

Whoever reads the profile hands over the spends as the profile's own parts account for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dp_accounting import PoissonSampledDpEvent

from securetm.accounting.calculator.budget_report import (
    Course,
    Promise,
    Question,
    largest_by,
    replacing,
    some,
    surely_within,
)
from securetm.accounting.calculator.mechanisms import BOUNDED_ROWS, PUBLIC, UNIT, WordNoise
from securetm.accounting.calculator.persons import SEPARATE, People
from securetm.accounting.calibration import BudgetTooSmall
from securetm.accounting.closed_forms import basic_epsilon
from securetm.accounting.composition import total, within
from securetm.accounting.ledger.privacy_filter import ALONE
from securetm.accounting.spends import Bill, leaves_of
from securetm.contracts import Budget, Unit
from securetm.figures import Curve, ReportTable
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
    bill: Bill
    against: str
    assumptions: tuple[str, ...]
    settings: Mapping[str, Any]
    people: People = SEPARATE
    noise: float | None = None  # over the bound on a row; nothing where the noise is on single words
    words_move_as_one: bool = True  # whether the spend of the words bounds any number of documents
    found_from: int = 0  # documents that a word needs to be found, where words are selected behind noise
    found_in: str = "one party"  # whose documents these are
    suggested: SuggestedRounds | None = None  # where the model needs few rounds
    before: tuple[str, ...] = ()  # notes on the run: its command, and the noise in its sums
    after: tuple[str, ...] = ()  # notes on what can be expected of it
    told: Mapping[str, Any] = field(default_factory=dict)  # the same as numbers

    @property
    def unit(self) -> str:
        """What the budget protects."""
        return self.budget.unit.value

    @property
    def delta(self) -> float:
        """The part of the budget's delta that one run may use."""
        return ALONE * self.budget.delta

    def question(self, progress: Stages) -> Question:
        """What the run spends, and what can be expected of it."""
        drawn_once = self.budget.unit is Unit.WORD and self.bill.round is None
        asked = self._drawn_once() if drawn_once else self._round_by_round(progress)
        return replace(asked, notes=some(*asked.notes, self.suggested.sentence if self.suggested else None, *self.after))

    def _round_by_round(self, progress: Stages) -> Question:
        """What the run spends. Where the budget ends before the last round, what the rounds spend that it lasts for."""
        budget, lasts = f"{upward(self.budget.epsilon)} per {self.unit}", self._lasting(progress)
        if lasts == 0:
            raise BudgetTooSmall("round", budget, "a round spends more, or its failure probability exceeds delta", _INSTEAD)
        rounds, coins = min(self.bill.rounds, lasts), self._coins()
        ends = (
            f"The budget, epsilon = {budget}, lasts for {counted(lasts, 'round')}: "
            f"the ledger ends the run there, before the {counted(self.bill.rounds, 'round')} asked for."
        )
        found_words = (
            f"A word that is in {self.found_from:,} documents of {self.found_in} is found in 99 of 100 selections; rare ones "
            "are not. A public list of words costs nothing and needs none."
        )
        return self._asked(
            f"Profile {self.profile}, {counted(rounds, 'round')}",
            Promise(
                self.unit,
                self.against,
                f"any one {self.unit} was in a party's corpus",
                coins + self.assumptions + self.people.assumptions,
            ),
            "poisson" if coins else "none",
            rounds,
            lasts,
            people=self.people,
            moves_as_one=self.words_move_as_one,
            along="rounds",
            courses=(Course("spent", self.bill.spends, rounds, whole=True),),
            beside=(Curve("budget", ((0.0, self.budget.epsilon), (float(rounds), self.budget.epsilon))),),
            warnings=(ends if self.bill.rounds > lasts else None,),
            notes=some(
                *self.before,
                *self.people.notes(),
                found_words if self.found_from else None,
                _SHARE,
                _ALL_ASKED if coins else None,
            ),
            tables=(self._parts(rounds, lasts),),
        )

    def _drawn_once(self) -> Question:
        """The noise on single word occurrences, which any number of rounds and runs uses again."""
        spends = self.bill.spends(self.bill.rounds)
        if not within(spends, self.budget.epsilon, self.delta):
            budget = f"{upward(self.budget.epsilon)} per {UNIT}"
            raise BudgetTooSmall("noise that is drawn once", budget, "it spends more", _INSTEAD)
        pure = basic_epsilon(leaves_of(spends))  # group privacy goes by it, at delta 0
        return self._asked(
            f"Profile {self.profile}, noise drawn once for {counted(self.bill.rounds, 'round')}",
            Promise(UNIT, self.against, f"any one {UNIT} is in a party's documents", _DRAWN_ONCE + self.assumptions),
            "none",
            self.bill.rounds,
            MOST_ROUNDS,
            notes=(_CHARGED_ONCE, BOUNDED_ROWS),
            replacing=replacing(pure, 0.0, UNIT),
            **WordNoise(pure).for_documents(),
        )

    def _asked(self, title: str, promise: Promise, sampling: str, rounds: int, lasts: int, **more: Any) -> Question:
        settings = {"profile": self.profile, "rounds": self.bill.rounds, **self.settings, "documents": self.people.documents}
        budget = {"epsilon": self.budget.epsilon, "delta": self.budget.delta, "lasts_rounds": lasts}
        suggested = {"suggested": asdict(self.suggested)} if self.suggested else {}
        more["found"] = {
            **more.get("found", {}),
            "rounds": rounds,
            "noise": self.noise,
            "budget": budget,
            **suggested,
            **self.told,
        }
        return Question(title, promise, self.bill.spends(rounds), self.budget.delta, sampling, settings, share=ALONE, **more)

    def _lasting(self, progress: Stages) -> int:
        """How many rounds the ledger would let it go on."""
        progress.stage("rounds that the budget lasts", _STEPS)
        tried = iter(range(1, MOST_ROUNDS))

        def fits(rounds: int) -> bool:
            progress.step(next(tried))
            return within(self.bill.spends(rounds), self.budget.epsilon, self.delta)

        return largest_by(lambda n: surely_within(self.bill.spends(n), self.budget.epsilon, self.delta), fits, MOST_ROUNDS)

    def _coins(self) -> tuple[str, ...]:
        """The assumption about the coins of sampled documents; nothing where all documents are asked."""
        event = self.bill.round.event if self.bill.round else None
        if not isinstance(event, PoissonSampledDpEvent):
            return ()
        coin = f"a coin of its own (with probability {event.sampling_probability:.4g}) that nobody else learns"
        return (f"a {self.unit} joins each round by {coin}",)

    def _parts(self, rounds: int, lasts: int) -> ReportTable:
        named = {"words": self.bill.words, "question before the training": self.bill.start}
        before = {name: spend for name, spend in named.items() if spend}
        rows = (
            *((f"the {name} alone", 1, total((spend,), self.delta).epsilon) for name, spend in before.items()),
            (" and ".join([*before, "rounds"]), rounds, total(self.bill.spends(rounds), self.delta).epsilon),
            ("the budget", lasts, self.budget.epsilon),
        )
        most = "; the budget allows a million rounds and more" if lasts == MOST_ROUNDS else ""
        caption = f"The budget lasts so many rounds{most}."
        return ReportTable("What it is spent on", ("", "rounds", f"epsilon per {self.unit}"), rows, caption)

"""Answers what a training by noised gradients (DP-SGD) spends, from public numbers alone. It reads no document."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace

import numpy as np
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from scipy import special

from securetm.accounting.calculator.budget_report import BudgetReport, Promise, epsilon_against, some
from securetm.accounting.calculator.composed_report import Spends, composed, curve
from securetm.accounting.calculator.option_checks import check, check_batch, check_choice, check_delta, check_epochs
from securetm.accounting.calculator.persons import PERSON, People, persons_table
from securetm.accounting.composition import total
from securetm.accounting.delta_limits import sentence_delta
from securetm.accounting.events import positive, probability, whole
from securetm.accounting.spends import Spend
from securetm.stages import Stages
from securetm.wording import counted, downward, upward

SAMPLINGS = ("poisson", "shuffled")
_LINES = {"poisson": "Poisson-sampled batches", "shuffled": "shuffled batches, provable"}
_THRESHOLDS = 20_001


@dataclass(frozen=True)
class Training:
    """A training by noised, clipped gradients; the documents are those of all parties, or those of one."""

    documents: int
    batch: int
    epochs: float
    noise: float
    delta: float
    sampling: str = "poisson"
    tokens: int | None = None  # in the longest document; a document's promise covers them all
    unit: str = ""  # document or person; nothing: the person where the next two say how many documents one has
    documents_per_person: int | None = None  # at most
    persons: int | None = None
    counted: bool = False  # in documents

    def __post_init__(self) -> None:
        check_batch(self.batch, self.documents)
        check_epochs(self.epochs, self.epochs / self.rate)
        check("--noise", self.noise)
        check_delta(self.delta)
        check_choice("--sampling", self.sampling, SAMPLINGS)
        check("--tokens", self.tokens)
        self.people.check_batch(self.batch)

    @property
    def people(self) -> People:
        """Whose documents they are."""
        return People(self.unit, self.documents, self.documents_per_person, self.persons, self.counted)

    @property
    def rate(self) -> float:
        """The probability with which a document or a person is in a batch."""
        return self.batch / self.documents

    @property
    def steps(self) -> int:
        """Noised gradients; a part of a step is a step."""
        return max(1, math.ceil(self.epochs / self.rate - 1e-9))

    def title(self) -> str:
        """The training in one line."""
        return (
            f"{counted(self.documents, 'document')} in batches of {self.batch:,}, {counted(self.epochs, 'epoch')}, "
            f"noise {self.noise:.4g}"
        )

    def spends(self) -> Spends:
        """Poisson-sampled batches are amplified; shuffled batches count as one answer per epoch."""
        gaussian = GaussianDpEvent(self.noise)
        if self.sampling == "shuffled":
            return (Spend(gaussian, count=max(1, math.ceil(self.epochs - 1e-9))),)
        return (Spend(PoissonSampledDpEvent(self.rate, gaussian), count=self.steps),)

    def promise(self) -> Promise:
        """What the figures mean, and what they assume."""
        unit, person = self.people.protected, self.people.protected == PERSON
        coin = f"each {unit} joins by a coin of its own, with probability {self.rate:.4g}"
        drawn = (f"every batch is a Poisson sample ({coin})", "nobody learns the coins or the noise")
        if self.sampling == "shuffled":
            once = f"every {unit} takes part once an epoch, in a batch that no other {unit} decides"
            drawn = (once, "nobody learns the noise")
        clipped = "all gradients of a person are added up and clipped together" * person
        return Promise(
            unit,
            "anyone who sees the model and every noised gradient that it was trained with",
            f"any one {unit} was trained with",
            (
                *drawn,
                clipped or "every document's gradient is clipped by itself",
                *self.people.assumptions,
                "whoever adds the noise is honest",
            ),
        )

    def shuffling(self) -> dict[str, float]:
        """What the same training spends by each way to draw batches."""
        ways = {way: total(replace(self, sampling=way).spends(), self.delta).epsilon for way in SAMPLINGS}
        least = least_epsilon_shuffled(max(1, math.ceil(1 / self.rate)), self.noise, self.delta)
        return {"at_least": least, "sound": ways["shuffled"], "poisson": ways["poisson"]}

    def report(self, progress: Stages) -> BudgetReport:
        """What the training spends, by its batches and by the other way to draw them."""
        shuffled, by_epoch = self.shuffling(), self.sampling == "shuffled"

        def spends(epochs: float) -> Spends:
            return replace(self, epochs=epochs).spends()

        line = curve(_LINES[self.sampling], spends, self.epochs, self.delta, progress, whole=by_epoch)
        tokens = (
            f"A document of {self.tokens:,} tokens is covered whole, and each of its words with it." if self.tokens else None
        )
        people = self.people
        bounds = people.bounds(self.spends(), line.points[-1][1], self.delta)
        return composed(
            f"DP-SGD, {self.title()}",
            self.promise(),
            self.spends(),
            self.delta,
            sampling=self.sampling,
            settings=asdict(self) | {"unit": people.protected, "rate": self.rate, "steps": self.steps},
            warnings=some(
                sentence_delta(self.delta, people.units, people.protected),
                people.warning(bounds),
                self._shuffled_warning(shuffled),
            ),
            notes=some(*people.notes(), tokens, self._shuffled_note(shuffled)),
            tables=persons_table(bounds),
            plots=(epsilon_against("epochs", people.protected, line),),
            found={"shuffled": shuffled, **people.recorded(bounds)},
        )

    def _shuffled_warning(self, shuffled: dict[str, float]) -> str | None:
        if self.sampling != "shuffled":
            return None
        proved = f"epsilon = {upward(shuffled['sound'])} per {self.people.protected}"
        return (
            f"Batches that are shuffled, not Poisson-sampled, get no amplification: {proved} is what can be proved, one epoch "
            f"alone spends at least {downward(shuffled['at_least'])}, and the Poisson formula, which is false here, would say "
            f"{upward(shuffled['poisson'])}."
        )

    def _shuffled_note(self, shuffled: dict[str, float]) -> str | None:
        if self.sampling == "shuffled" or self.rate == 1:
            return None
        return (
            f"Only for Poisson samples. Batches from a shuffled list spend at least epsilon = {downward(shuffled['at_least'])} "
            f"per {self.people.protected} in one epoch alone; {upward(shuffled['sound'])} is what can be proved for them "
            "(--sampling shuffled)."
        )


def least_epsilon_shuffled(batches_per_epoch: int, noise: float, delta: float) -> float:
    """No epsilon below this holds for one epoch of shuffled batches with this noise multiplier. It is a bound from below only.

    The neighbours are those of Chua et al. 2024 (How private are DP-SGD implementations?): all other rows are opposite to the
    unit's, so that the sum of its batch is 2 above all other sums where it is present, and 1 above where its place is left
    empty; the event is that any sum passes a threshold. Each threshold gives a true bound; the best of a grid is taken.
    """
    batches, deviation = whole("batches per epoch", batches_per_epoch, least=1), positive("noise", noise)
    lost = probability("delta", delta)
    passing = np.linspace(-10 * deviation, 2 + 40 * deviation, _THRESHOLDS)
    others = (batches - 1) * special.log_ndtr(passing / deviation)
    with_unit = -np.expm1(others + special.log_ndtr((passing - 2) / deviation))
    without = -np.expm1(others + special.log_ndtr((passing - 1) / deviation))
    seen = (with_unit > lost) & (without > 0)
    return max(0.0, float(np.max(np.log(with_unit[seen] - lost) - np.log(without[seen]), initial=-math.inf)))
